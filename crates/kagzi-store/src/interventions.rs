//! Questions to people in a store: how they are changed, and what people read.

use async_trait::async_trait;
use kagzi_model::{
    Name, RunId, Timestamp,
    intervention::{
        Channel, Intervention, InterventionKey, InterventionState, InterventionType, Notice, Recorded,
        Severity,
    },
};

use crate::{Page, PageRequest, StoreError};

/// Everybody is asked: how that is said where people are named.
pub const ANYBODY: &str = "*";

/// What an accepted request answers.
#[derive(Debug, Clone, PartialEq)]
pub struct InterventionReply {
    /// As it is now.
    pub row: Intervention,
    pub recorded: Recorded,
}

/// Takes notices of one channel that are due, for as long as it may take to send them: until then nobody else
/// takes them. A channel that hangs does not delay the others.
#[derive(Debug, Clone, Copy)]
pub struct TakeNotices {
    pub channel: Channel,
    pub until: Timestamp,
    pub limit: usize,
}

/// What became of a notice that was taken: its state, attempts, error and next time are written.
#[derive(Debug, Clone)]
pub struct SettleNotice(pub Notice);

/// Which questions to list; unset fields match all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InterventionFilter {
    /// None: all.
    pub states: Vec<InterventionState>,
    /// Those that any of these is asked: a person, groups, [`ANYBODY`]. None: all.
    pub assignees: Vec<Name>,
    pub kind: Option<InterventionType>,
    pub run: Option<RunId>,
    pub severity_min: Option<Severity>,
    pub due_before: Option<Timestamp>,
}

impl InterventionFilter {
    /// The states that are asked for.
    pub fn states(&self) -> Vec<InterventionState> {
        if self.states.is_empty() { InterventionState::ALL.to_vec() } else { self.states.clone() }
    }

    /// Whether a row is wanted.
    pub fn matches(&self, row: &Intervention) -> bool {
        let asked = asked(row);
        (self.states.is_empty() || self.states.contains(&row.state))
            && (self.assignees.is_empty() || self.assignees.iter().any(|name| asked.contains(name)))
            && self.kind.is_none_or(|kind| row.ask.kind == kind)
            && self.run.is_none_or(|run| row.run == run)
            && self.severity_min.is_none_or(|min| row.severity.is_some_and(|severity| severity >= min))
            && self.due_before.is_none_or(|at| row.due_at() <= at)
    }
}

/// Who is asked, each once; [`ANYBODY`] where nobody is named.
pub fn asked(row: &Intervention) -> Vec<Name> {
    let mut asked = row.assignees.clone();
    asked.sort_unstable();
    asked.dedup();
    if asked.is_empty() {
        asked.push(Name::from(ANYBODY));
    }
    asked
}

/// Questions, for people.
#[async_trait]
pub trait InterventionReads: Send + Sync {
    async fn intervention(&self, key: &InterventionKey) -> Result<Option<Intervention>, StoreError>;
    /// Questions, the most urgent first.
    async fn interventions(
        &self,
        namespace: &Name,
        filter: &InterventionFilter,
        page: &PageRequest,
    ) -> Result<Page<Intervention>, StoreError>;
    /// What was told about a question, in the order in which it was written.
    async fn notices(&self, key: &InterventionKey) -> Result<Vec<Notice>, StoreError>;
    /// Since when the notice is due that nobody has taken for longest; a time to come where all are on time.
    async fn notice_due_since(&self) -> Result<Option<Timestamp>, StoreError>;
}
