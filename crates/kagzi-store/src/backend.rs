//! What a database must do. It loads, finds and writes; it never decides.

use std::future::Future;

use kagzi_model::{
    Aggregate, Entity, Event, Gate, Millis, Name, Namespace, Payload, Run, RunId, RunKey, Timestamp, Worker,
    WorkerId, schedule::Schedule,
};

use crate::{ControlBackend, ScheduleRows, StoreError};

/// Where a run waits: claims are made per key, so a type that nobody registers never stands in the way.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueKey {
    pub namespace: Name,
    pub task_queue: Name,
    pub workflow_type: Name,
}

impl QueueKey {
    /// The key under which this run waits.
    pub fn of(run: &Run) -> Self {
        QueueKey {
            namespace: run.namespace.clone(),
            task_queue: run.task_queue.clone(),
            workflow_type: run.workflow_type.clone(),
        }
    }
}

/// Which due runs to find: of several keys at once, so that a turn asks once however many there are.
#[derive(Debug, Clone)]
pub struct DueQuery<'a> {
    pub keys: &'a [DueKey],
    pub now: Timestamp,
    /// Runs that are left alone.
    pub aside: &'a [RunId],
}

/// One key of a [`DueQuery`], or of a look for the next due run.
#[derive(Debug, Clone)]
pub struct DueKey {
    pub key: QueueKey,
    /// How many runs to find at the most; how many to pass over, when looking for the next.
    pub len: usize,
    /// Runs that were due before this need not be found.
    pub from: Timestamp,
}

/// A due run that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DueRun {
    pub at: Timestamp,
    pub run: RunId,
    /// The place of its key in the query.
    pub key: usize,
}

/// A run that has a business id.
#[derive(Debug)]
pub struct FoundBusiness {
    /// The place of the id in the question.
    pub place: usize,
    pub id: RunId,
    pub input: Payload,
    /// Its row, or why it cannot be read.
    pub run: Result<Box<Run>, String>,
}

impl FoundBusiness {
    /// What reading the row made of it. Only a row that cannot be read is set apart from the others.
    pub fn of(
        place: usize,
        id: RunId,
        input: Result<Option<Payload>, StoreError>,
        run: Result<Run, StoreError>,
    ) -> Result<FoundBusiness, StoreError> {
        let (input, run) = match input.and_then(|input| Ok((input, run?))) {
            Ok((input, run)) => (input, Ok(Box::new(run))),
            Err(StoreError::Corrupt(why)) => (None, Err(why)),
            Err(other) => return Err(other),
        };
        let input = input.unwrap_or_else(|| Payload::new(&b""[..]));
        Ok(FoundBusiness { place, id, input, run })
    }
}

/// Runs that were loaded, and those that are there and cannot be read.
#[derive(Debug, Default)]
pub struct Loaded {
    pub runs: Vec<Aggregate>,
    pub unreadable: Vec<(RunKey, String)>,
}

/// Which workers to load: all of them in one go, however many a batch speaks of.
#[derive(Debug, Clone, Copy, Default)]
pub struct WorkersQuery<'a> {
    /// Everything that these hold is looked for.
    pub whole: &'a [WorkerId],
    /// Only what is left of `held`, because nobody else can have leased anything to them.
    pub known: &'a [WorkerId],
    /// What `known` held as far as memory knew, and what they say that they hold.
    pub held: &'a [(WorkerId, RunKey)],
}

/// A worker and the runs that it holds.
#[derive(Debug)]
pub struct LoadedWorker {
    pub worker: Worker,
    pub holds: Vec<RunId>,
}

/// Workers that were loaded, and those that are there and cannot be read.
#[derive(Debug, Default)]
pub struct LoadedWorkers {
    pub workers: Vec<LoadedWorker>,
    pub unreadable: Vec<(WorkerId, String)>,
}

/// Which runs past their retention to find.
#[derive(Debug, Clone)]
pub struct RetireQuery<'a> {
    pub now: Timestamp,
    /// How long runs are kept in a namespace that does not say; none = for ever.
    pub keep_ms: Option<Millis>,
    /// Only in namespaces behind this one.
    pub after: &'a Name,
    pub limit: usize,
}

impl RetireQuery<'_> {
    /// Up to when runs must have ended, in a namespace that keeps them for so long itself.
    pub fn until(&self, own: Option<Millis>) -> Option<Timestamp> {
        Namespace::retired_until(self.now, own, self.keep_ms)
    }
}

/// One event of one run, to be written.
#[derive(Debug, Clone)]
pub struct EventRow {
    pub namespace: Name,
    pub run: RunId,
    pub event: Event,
}

/// One label of one run, with the times by which its run is listed.
#[derive(Debug, Clone)]
pub struct LabelRow {
    pub namespace: Name,
    pub run: RunId,
    pub name: Name,
    pub value: Name,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}

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
    }
}

/// One connection that writes. Between `begin` and `commit` it sees its own writes; after `commit` returns
/// `Ok` they survive a power cut; after an error or `rollback` none of them exists.
pub trait Backend: ControlBackend + ScheduleRows {
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

    /// Runs with their steps; unknown ones are left out, and one that cannot be read hides no other.
    fn load(&mut self, keys: &[RunKey]) -> impl Future<Output = Result<Loaded, StoreError>> + Send;
    /// The runs that have these business ids, each given with its namespace; those that are free are left
    /// out. Their histories are not read: a start is compared with the row and the input.
    fn find_business(
        &mut self,
        ids: &[(Name, Name)],
    ) -> impl Future<Output = Result<Vec<FoundBusiness>, StoreError>> + Send;
    /// The input of a run, if the run is there.
    fn input(&mut self, key: &RunKey) -> impl Future<Output = Result<Option<Payload>, StoreError>> + Send;
    /// Claimable runs that are due, earliest first, of each key no more than it asks for.
    fn due(&mut self, query: &DueQuery<'_>) -> impl Future<Output = Result<Vec<DueRun>, StoreError>> + Send;
    /// For each key: when the claimable run is due that comes after the first `len`, those that `due` has
    /// just found. On a shared database it may be due already, and in the hands of another server.
    fn next_due(
        &mut self,
        keys: &[DueKey],
        aside: &[RunId],
    ) -> impl Future<Output = Result<Vec<Option<Timestamp>>, StoreError>> + Send;
    /// Runs whose lease or deadline passed, earliest first, but for those that are left alone. What passed
    /// before `from` need not be found.
    fn sweep_due(
        &mut self,
        from: Timestamp,
        now: Timestamp,
        limit: usize,
        aside: &[RunId],
    ) -> impl Future<Output = Result<Vec<RunKey>, StoreError>> + Send;
    /// When the next lease or deadline passes, of a run that is not left alone.
    fn next_sweep(
        &mut self,
        from: Timestamp,
        aside: &[RunId],
    ) -> impl Future<Output = Result<Option<Timestamp>, StoreError>> + Send;

    /// Those of these runs that are there and have not ended.
    fn living(&mut self, keys: &[RunKey]) -> impl Future<Output = Result<Vec<RunId>, StoreError>> + Send;
    /// Runs that are past their retention, with when they were created, namespace by namespace. What another
    /// server is deleting at this moment is passed over.
    fn retirable(
        &mut self,
        query: &RetireQuery<'_>,
    ) -> impl Future<Output = Result<Vec<(RunKey, Timestamp)>, StoreError>> + Send;
    /// Deletes the rows and labels of runs, and remembers that their events are still to go.
    fn retire(&mut self, keys: &[RunKey]) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// Deletes up to `limit` rows of events of retired runs, and says how many.
    fn purge(&mut self, limit: usize) -> impl Future<Output = Result<usize, StoreError>> + Send;

    /// The queue of the newest worker, online or not, that registered the namespace's failure handler.
    fn handler_queue(
        &mut self,
        namespace: &Name,
    ) -> impl Future<Output = Result<Option<Name>, StoreError>> + Send;

    /// Workers, each with what it holds; unknown ones are left out, and one that cannot be read hides no
    /// other.
    fn load_workers(
        &mut self,
        query: &WorkersQuery<'_>,
    ) -> impl Future<Output = Result<LoadedWorkers, StoreError>> + Send;
    /// Marks workers as standing by here and at no other server, and loads them as marked, with all that they
    /// hold. Whoever leases a run to one of them elsewhere at this moment has committed before this returns,
    /// or will be refused. Only asked where several servers share the database.
    fn stand_by(
        &mut self,
        ids: &[WorkerId],
    ) -> impl Future<Output = Result<LoadedWorkers, StoreError>> + Send;
    /// Those of the workers that still stand by here.
    fn standing(
        &mut self,
        ids: &[WorkerId],
    ) -> impl Future<Output = Result<Vec<WorkerId>, StoreError>> + Send {
        let ids = ids.to_vec();
        async move { Ok(ids) }
    }
    /// Runs leased to a worker.
    fn leased_by(&mut self, id: WorkerId) -> impl Future<Output = Result<Vec<RunKey>, StoreError>> + Send;
    /// Workers that are not offline and whose last heartbeat is before `before`, longest silent first.
    fn stale_workers(
        &mut self,
        before: Timestamp,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<WorkerId>, StoreError>> + Send;

    /// Writes the rows of a batch. Uniqueness is the database's to enforce.
    fn write(&mut self, set: WriteSet) -> impl Future<Output = Result<(), StoreError>> + Send;
}
