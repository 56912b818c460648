//! Parents and children: runs that a run has started, and what becomes of them when it ends.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Name, RunId};

/// How the channels begin on which the ends of children are told.
const CHANNEL: &str = "~child/";

/// Set on a run that another run started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    pub run: RunId,
    /// The step that started it.
    pub step: Name,
    pub close: ClosePolicy,
    /// How many runs stand above it.
    pub depth: u32,
    /// The parent is told of its end.
    pub told: bool,
}

/// What becomes of a child when its parent ends, however that ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClosePolicy {
    /// It is cancelled.
    Cancel = 1,
    /// It is terminated: it counts as failed, and its failure handler runs.
    Terminate = 2,
    /// It goes on.
    Abandon = 3,
}

impl ClosePolicy {
    /// All of them.
    pub const ALL: [ClosePolicy; 3] = [ClosePolicy::Cancel, ClosePolicy::Terminate, ClosePolicy::Abandon];

    /// The one with this number.
    pub fn from_number(number: u64) -> Option<ClosePolicy> {
        ClosePolicy::ALL.into_iter().find(|policy| *policy as u64 == number)
    }

    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            ClosePolicy::Cancel => "cancel",
            ClosePolicy::Terminate => "terminate",
            ClosePolicy::Abandon => "abandon",
        }
    }
}

/// A child that a generation hands on to the next one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LivingChild {
    pub run: RunId,
    pub close: ClosePolicy,
}

/// The children of one run. A run that never started any has none of this.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Family {
    /// All that it ever started.
    started: usize,
    /// Those whose end it has not heard of. One that is abandoned and never awaited is not among them.
    living: BTreeMap<RunId, ClosePolicy>,
    /// How many of these are to be closed when it ends.
    to_close: usize,
    /// Those that were told to end because it had ended.
    closed: BTreeSet<RunId>,
    /// The child of each step that started one; the last, where a step began anew.
    by_step: HashMap<Name, RunId>,
}

impl Family {
    /// The family of a generation that begins; none where there is nobody to begin with. Children that it
    /// started before count as long as they live.
    pub fn beginning(children: &[LivingChild]) -> Option<Box<Family>> {
        let mut family = Family::default();
        for LivingChild { run, close } in children {
            family.to_close += usize::from(*close != ClosePolicy::Abandon);
            family.living.insert(*run, *close);
        }
        family.started = family.living.len();
        (family.started > 0).then(|| Box::new(family))
    }

    /// The children that the next generation is given.
    pub fn carried(&self) -> Vec<LivingChild> {
        self.living.iter().map(|(run, close)| LivingChild { run: *run, close: *close }).collect()
    }

    /// How many children it has started.
    pub fn started_len(&self) -> usize {
        self.started
    }

    /// Children that must be closed when it ends.
    pub fn has_to_close(&self) -> bool {
        self.to_close > 0
    }

    /// The first so many of them, with what becomes of each.
    pub fn to_close(&self, len_max: usize) -> Vec<(RunId, ClosePolicy)> {
        let left = self.living.iter().filter(|(_, close)| **close != ClosePolicy::Abandon);
        left.map(|(run, close)| (*run, *close)).take(len_max).collect()
    }

    /// Children whose end it has not heard of.
    pub fn living(&self) -> impl Iterator<Item = RunId> {
        self.living.keys().copied()
    }

    /// Its end was not heard of, and somebody may want to hear of it.
    pub fn is_living(&self, run: RunId) -> bool {
        self.living.contains_key(&run)
    }

    /// The child that this step has started.
    pub fn of_step(&self, step: &Name) -> Option<RunId> {
        self.by_step.get(step).copied()
    }

    /// The child was told to end because the run had ended.
    pub fn was_closed(&self, run: RunId) -> bool {
        self.closed.contains(&run)
    }

    pub(crate) fn start(&mut self, step: &Name, run: RunId, close: ClosePolicy, told: bool) {
        self.started += 1;
        self.by_step.insert(step.clone(), run);
        if told || close != ClosePolicy::Abandon {
            self.to_close += usize::from(close != ClosePolicy::Abandon);
            self.living.insert(run, close);
        }
    }

    pub(crate) fn end(&mut self, run: RunId) {
        if let Some(close) = self.living.remove(&run) {
            self.to_close -= usize::from(close != ClosePolicy::Abandon);
        }
    }

    pub(crate) fn close(&mut self, runs: &[RunId]) {
        for run in runs {
            self.end(*run);
            self.closed.insert(*run);
        }
    }
}

/// The channel on which a run is told of the end of this child.
pub fn child_channel(child: RunId) -> Name {
    Name::from(format!("{CHANNEL}{child}"))
}

/// The child whose end is told on this channel, if it is such a channel.
pub fn child_of(channel: &str) -> Option<RunId> {
    channel.strip_prefix(CHANNEL).and_then(|id| Uuid::try_parse(id).ok()).map(RunId)
}

/// The end of a child is told on this channel.
pub fn is_child_channel(channel: &str) -> bool {
    channel.starts_with(CHANNEL)
}
