//! Which runs to list, and in which order.

use kagzi_model::{Name, Run, Status, Timestamp};

use crate::Cursor;

/// Which runs to list; what is unset or empty matches all. Everything that is set must match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Any of these.
    pub statuses: Vec<Status>,
    pub workflow_type: Option<Name>,
    pub task_queue: Option<Name>,
    /// Of failed, timed-out and retrying runs.
    pub error_code: Option<Name>,
    /// The reason to wake in one word.
    pub reason: Option<Name>,
    /// Started by this schedule.
    pub schedule: Option<Name>,
    pub business_id: Option<Name>,
    /// Only business ids that were chosen: the id of a run only stands in for one.
    pub business_id_prefix: Option<Name>,
    /// All of these, name and value.
    pub labels: Vec<(Name, Name)>,
    pub created: TimeRange,
    /// Runs that have not ended are in no range but the open one.
    pub finished: TimeRange,
    pub order: RunOrder,
}

/// From one moment, inclusive, to another, exclusive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeRange {
    pub from: Option<Timestamp>,
    pub to: Option<Timestamp>,
}

/// The order of a listing. The id breaks ties, so that every run has one place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunOrder {
    pub by: OrderBy,
    /// Oldest first.
    pub ascending: bool,
}

/// The time that runs are listed by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OrderBy {
    #[default]
    CreatedAt,
    /// Lists only runs that have ended: the others have no place in this order.
    FinishedAt,
}

impl RunOrder {
    /// The place of a run in this order, if it has one.
    pub fn cursor(&self, run: &Run) -> Option<Cursor> {
        let at = match self.by {
            OrderBy::CreatedAt => Some(run.created_at),
            OrderBy::FinishedAt => run.finished_at,
        };
        at.map(|at| Cursor { at, id: run.id.0 })
    }
}

impl TimeRange {
    /// Matches every time, and the absence of one.
    pub fn is_open(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    pub(crate) fn contains(&self, at: Timestamp) -> bool {
        self.from.is_none_or(|from| from <= at) && self.to.is_none_or(|to| at < to)
    }
}

impl RunFilter {
    /// Whether a run of the namespace is listed: the rule that the databases' statements are compared with.
    pub fn matches(&self, run: &Run) -> bool {
        let named = |wanted: &Option<Name>, name: &Name| wanted.as_ref().is_none_or(|wanted| wanted == name);
        let shown = |wanted: &Name| **wanted == *run.shown_id();
        let prefixed = |prefix: &Name| run.business_id.as_ref().is_some_and(|id| id.starts_with(&**prefix));
        (self.statuses.is_empty() || self.statuses.contains(&run.state.status()))
            && named(&self.workflow_type, &run.workflow_type)
            && named(&self.task_queue, &run.task_queue)
            && self.error_code.as_ref().is_none_or(|code| run.state.error_code() == Some(code))
            && self
                .reason
                .as_ref()
                .is_none_or(|name| run.state.reason().is_some_and(|reason| *reason.name() == **name))
            && self.schedule.as_ref().is_none_or(|id| run.schedule() == Some(id))
            && self.business_id.as_ref().is_none_or(shown)
            && self.business_id_prefix.as_ref().is_none_or(prefixed)
            && self.labels.iter().all(|(name, value)| run.labels.get(name) == Some(value))
            && self.created.contains(run.created_at)
            && (self.finished.is_open() || run.finished_at.is_some_and(|at| self.finished.contains(at)))
            && self.order.cursor(run).is_some()
    }
}
