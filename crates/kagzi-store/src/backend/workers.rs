//! Workers: what the lane asks of their table.

use std::future::Future;

use kagzi_model::{Name, RunId, RunKey, Timestamp, Worker, WorkerId};

use crate::StoreError;

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

/// Workers, for the connection that writes.
pub trait WorkerRows: Send {
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
    /// Deletes workers that are offline since before `before` and hold nothing, longest first.
    fn forget_workers(
        &mut self,
        before: Timestamp,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Worker>, StoreError>> + Send;
}
