//! Schedules: what the lane asks of their table.

use std::future::Future;

use kagzi_model::{
    Timestamp,
    schedule::{Schedule, ScheduleKey},
};
use uuid::Uuid;

use crate::StoreError;

/// A schedule that has something to do.
#[derive(Debug, Clone, PartialEq)]
pub enum DueSchedule {
    Read(Box<Schedule>),
    /// Its key, the key of its index, and why it cannot be read.
    Unreadable(ScheduleKey, Uuid, String),
}

impl DueSchedule {
    /// What reading the row made of it. Only a row that cannot be read is set apart from the others.
    pub fn of(
        key: ScheduleKey,
        uid: Uuid,
        read: Result<Schedule, StoreError>,
    ) -> Result<DueSchedule, StoreError> {
        match read {
            Ok(schedule) => Ok(DueSchedule::Read(Box::new(schedule))),
            Err(StoreError::Corrupt(why)) => Ok(DueSchedule::Unreadable(key, uid, why)),
            Err(other) => Err(other),
        }
    }
}

/// Schedules, for the connection that writes.
pub trait ScheduleRows: Send {
    /// One schedule.
    fn load_schedule(
        &mut self,
        key: &ScheduleKey,
    ) -> impl Future<Output = Result<Option<Schedule>, StoreError>> + Send;
    /// Several schedules; unknown ones are left out.
    fn load_schedules(
        &mut self,
        keys: &[ScheduleKey],
    ) -> impl Future<Output = Result<Vec<Schedule>, StoreError>> + Send;
    /// One schedule, kept for this transaction; none also when another server has it at this moment.
    fn claim_schedule(
        &mut self,
        key: &ScheduleKey,
    ) -> impl Future<Output = Result<Option<Schedule>, StoreError>> + Send;
    /// Schedules with something to do, longest due first; what another server has at this moment is passed
    /// over, and so is what is left alone (`aside`). One that cannot be read hides no other.
    fn claim_due_schedules(
        &mut self,
        now: Timestamp,
        limit: usize,
        aside: &[Uuid],
    ) -> impl Future<Output = Result<Vec<DueSchedule>, StoreError>> + Send;
    /// When the next schedule has something to do, of those that are not left alone.
    fn next_schedule(
        &mut self,
        aside: &[Uuid],
    ) -> impl Future<Output = Result<Option<Timestamp>, StoreError>> + Send;
}
