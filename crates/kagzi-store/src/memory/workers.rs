//! Workers of the reference store.

use kagzi_model::{Name, RunKey, Timestamp, Worker, WorkerId, WorkerStatus};

use super::MemoryBackend;
use crate::{LoadedWorker, LoadedWorkers, StoreError, WorkerRows, WorkersQuery};

impl WorkerRows for MemoryBackend {
    async fn handler_queue(&mut self, namespace: &Name) -> Result<Option<Name>, StoreError> {
        let handles = |worker: &&Worker| {
            let registration = &worker.registration;
            registration.namespace == *namespace && registration.handles_failures()
        };
        let newest = self
            .working
            .workers
            .values()
            .filter(handles)
            .max_by_key(|worker| (worker.registered_at, worker.id));
        Ok(newest.map(|worker| worker.registration.task_queue.clone()))
    }

    async fn load_workers(&mut self, query: &WorkersQuery<'_>) -> Result<LoadedWorkers, StoreError> {
        let ids = query.whole.iter().chain(query.known);
        let load = |id: &WorkerId| {
            let worker = self.working.workers.get(id)?.clone();
            let holds = self.working.leased_by(*id).into_iter().map(|key| key.id).collect();
            Some(LoadedWorker { worker, holds })
        };
        Ok(LoadedWorkers { workers: ids.filter_map(load).collect(), unreadable: Vec::new() })
    }

    async fn stand_by(&mut self, ids: &[WorkerId]) -> Result<LoadedWorkers, StoreError> {
        self.load_workers(&WorkersQuery { whole: ids, ..WorkersQuery::default() }).await
    }

    async fn leased_by(&mut self, id: WorkerId) -> Result<Vec<RunKey>, StoreError> {
        Ok(self.working.leased_by(id))
    }

    async fn stale_workers(&mut self, before: Timestamp, limit: usize) -> Result<Vec<WorkerId>, StoreError> {
        let stale = self
            .working
            .workers
            .values()
            .filter(|worker| worker.status != WorkerStatus::Offline && worker.heartbeat_at < before);
        let mut stale: Vec<_> = stale.map(|worker| (worker.heartbeat_at, worker.id)).collect();
        stale.sort_unstable();
        Ok(stale.into_iter().take(limit).map(|(_, id)| id).collect())
    }

    async fn forget_workers(&mut self, before: Timestamp, limit: usize) -> Result<Vec<Worker>, StoreError> {
        let tables = &mut self.working;
        let mut old: Vec<_> = tables
            .workers
            .values()
            .filter(|worker| worker.status == WorkerStatus::Offline)
            .filter(|worker| worker.deregistered_at.is_some_and(|at| at < before))
            .filter(|worker| tables.leased_by(worker.id).is_empty())
            .cloned()
            .collect();
        old.sort_by_key(|worker| (worker.deregistered_at, worker.id));
        old.truncate(limit);
        for worker in &old {
            tables.workers.remove(&worker.id);
        }
        Ok(old)
    }
}
