//! Schedules in a store: what is asked, what a database must do for it.

use std::future::Future;

use async_trait::async_trait;
use kagzi_model::{
    Name, RunId, Timestamp,
    schedule::{Schedule, ScheduleKey},
};

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

/// A change of a schedule's row. Update and Delete replace the row whose version is one lower; another one there is a
/// [`StoreError::Conflict`].
#[derive(Debug, Clone, PartialEq)]
pub enum ScheduleWrite {
    Insert(Box<Schedule>),
    Update(Box<Schedule>),
    Delete { key: ScheduleKey, version: u64 },
}

/// Schedules, for the connection that writes.
pub trait ScheduleRows: Send {
    /// One schedule.
    fn load_schedule(
        &mut self,
        key: &ScheduleKey,
    ) -> impl Future<Output = Result<Option<Schedule>, StoreError>> + Send;
    /// The same, kept for this transaction; none also when another server has it at this moment.
    fn claim_schedule(
        &mut self,
        key: &ScheduleKey,
    ) -> impl Future<Output = Result<Option<Schedule>, StoreError>> + Send;
    /// Schedules with something to do, longest due first; what another server has at this moment is passed over.
    fn claim_due_schedules(
        &mut self,
        now: Timestamp,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Schedule>, StoreError>> + Send;
    /// When the next schedule has something to do.
    fn next_schedule(&mut self) -> impl Future<Output = Result<Option<Timestamp>, StoreError>> + Send;
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
