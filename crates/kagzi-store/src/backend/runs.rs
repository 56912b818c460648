//! Runs: what the lane asks of their table.

use std::future::Future;

use kagzi_model::{Aggregate, Name, Payload, Run, RunId, RunKey, Timestamp};

use crate::StoreError;

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

/// Runs, for the connection that writes.
pub trait RunRows: Send {
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
}
