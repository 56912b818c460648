//! What a database must do, table by table. It loads, finds and writes; it never decides. A store has files
//! of the same names.

mod controls;
mod events;
mod generations;
mod interventions;
mod labels;
mod nouns;
mod retention;
mod runs;
mod schedules;
mod topics;
mod workers;

use std::future::Future;

use kagzi_model::{
    Entity, Gate, Name, Namespace, NounRow, Run, RunKey, Worker, WorkerId, schedule::Schedule,
};

use crate::StoreError;

pub use controls::ControlRows;
pub use events::EventRow;
pub use generations::{Continued, OLD_ROWS_MAX};
pub use interventions::{DueQuestion, InterventionRows, PeopleSet};
pub use labels::LabelRow;
pub use nouns::NounRows;
pub use retention::{RetentionRows, RetireQuery};
pub use runs::{DueKey, DueQuery, DueRun, FoundBusiness, Loaded, QueueKey, RunRows};
pub use schedules::{DueSchedule, ScheduleRows};
pub use topics::{SubscriptionRow, TopicRows};
pub use workers::{LoadedWorker, LoadedWorkers, WorkerRows, WorkersQuery};

/// Changed rows of one kind, to be written in this order.
#[derive(Debug, Clone, PartialEq)]
pub struct Changes<E: Entity> {
    /// Each deletes the row with this version; another one there is a [`StoreError::Conflict`].
    pub deleted: Vec<(E::Key, u64)>,
    /// Made by their first use. Another server may have been first with the very same row.
    pub implicit: Vec<E>,
    /// Must not be there yet; else a [`StoreError::Conflict`].
    pub inserted: Vec<E>,
    /// Each replaces the row with this version; another one there is a [`StoreError::Conflict`].
    pub updated: Vec<(u64, E)>,
}

impl<E: Entity> Default for Changes<E> {
    fn default() -> Self {
        Changes { deleted: Vec::new(), implicit: Vec::new(), inserted: Vec::new(), updated: Vec::new() }
    }
}

impl<E: Entity> Changes<E> {
    /// Every row that is there afterwards, for tables whose rows are guarded by another one's version.
    pub fn rows(&self) -> impl Iterator<Item = &E> {
        let updated = self.updated.iter().map(|(_, row)| row);
        self.implicit.iter().chain(&self.inserted).chain(updated)
    }

    /// Nothing to write.
    pub fn is_empty(&self) -> bool {
        self.deleted.is_empty()
            && self.implicit.is_empty()
            && self.inserted.is_empty()
            && self.updated.is_empty()
    }
}

/// The final rows of a batch.
#[derive(Debug, Default)]
pub struct WriteSet {
    /// Runs that give up their business id to one that is inserted, before it is.
    pub unnamed: Vec<RunKey>,
    pub inserted: Vec<Run>,
    /// Each replaces the row whose version is one lower; another one there is a [`StoreError::Conflict`].
    pub updated: Vec<Run>,
    pub events: Vec<EventRow>,
    /// Runs among the updated ones that continued in place.
    pub continued: Vec<Continued>,
    /// Labels of runs that were labelled or that ended: each replaces the row of the same run and name.
    pub labels: Vec<LabelRow>,
    pub workers: Changes<Worker>,
    /// Workers that these rows lease runs to, on a shared database. One that stands by at another server by
    /// now is a [`StoreError::Conflict`]: its runs are counted there.
    pub leased_to: Vec<(Name, WorkerId)>,
    pub schedules: Changes<Schedule>,
    pub namespaces: Changes<Namespace>,
    /// Guarded by the versions of their namespaces.
    pub gates: Changes<Gate>,
    pub nouns: Changes<NounRow>,
    /// Waits for events that were opened: a row that is there already stays.
    pub subscribed: Vec<SubscriptionRow>,
    /// Waits for events that are over: a row that is gone already is no error.
    pub unsubscribed: Vec<SubscriptionRow>,
    /// Questions to people and the outbox; none in nearly every batch.
    pub people: Option<Box<PeopleSet>>,
}

impl WriteSet {
    /// Nothing to write.
    pub fn is_empty(&self) -> bool {
        self.inserted.is_empty()
            && self.updated.is_empty()
            && self.events.is_empty()
            && self.labels.is_empty()
            && self.workers.is_empty()
            && self.schedules.is_empty()
            && self.namespaces.is_empty()
            && self.gates.is_empty()
            && self.nouns.is_empty()
            && self.subscribed.is_empty()
            && self.unsubscribed.is_empty()
            && self.people.is_none()
    }
}

/// One connection that writes. Between `begin` and `commit` it sees its own writes; after `commit` returns
/// `Ok` they survive a power cut; after an error or `rollback` none of them exists.
pub trait Backend:
    RunRows
    + WorkerRows
    + ScheduleRows
    + ControlRows
    + NounRows
    + TopicRows
    + InterventionRows
    + RetentionRows
    + 'static
{
    fn begin(&mut self) -> impl Future<Output = Result<(), StoreError>> + Send;
    fn commit(&mut self) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// Does what a write needs (a lock, a round trip) and changes nothing.
    fn probe(&mut self) -> impl Future<Output = Result<(), StoreError>> + Send {
        async { Ok(()) }
    }
    fn rollback(&mut self) -> impl Future<Output = ()> + Send;
    /// How often it has waited for an answer of a database at the other end of a network; 0 where there is
    /// none.
    fn round_trips(&self) -> u64 {
        0
    }

    /// Writes the rows of a batch. Uniqueness is the database's to enforce.
    fn write(&mut self, set: WriteSet) -> impl Future<Output = Result<(), StoreError>> + Send;
}
