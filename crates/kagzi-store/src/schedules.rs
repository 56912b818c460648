//! Schedules in a store: what a request is answered, and what people read.

use async_trait::async_trait;
use kagzi_model::{Name, RunId, schedule::Schedule};

use crate::{Page, PageRequest, StoreError};

/// What an accepted request answers.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleReply {
    /// As it is now; for a deletion, as it was.
    pub schedule: Schedule,
    /// The run that was triggered, and whether it had been before.
    pub run: Option<(RunId, bool)>,
    /// Something was written; false when the request had been carried out before.
    pub changed: bool,
}

/// Schedules, for people.
#[async_trait]
pub trait ScheduleReads: Send + Sync {
    async fn schedule_by_id(&self, namespace: &Name, id: &Name) -> Result<Option<Schedule>, StoreError>;
    /// Schedules, newest first.
    async fn schedules(
        &self,
        namespace: &Name,
        filter: &ScheduleFilter,
        page: &PageRequest,
    ) -> Result<Page<Schedule>, StoreError>;
}

/// Which schedules to list; unset fields match all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScheduleFilter {
    pub workflow_type: Option<Name>,
    pub paused: Option<bool>,
}
