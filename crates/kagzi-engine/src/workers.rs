//! Who is there: workers by status, all of them.

use kagzi_model::{Name, WorkerId, WorkerStatus};
use kagzi_store::{Cursor, Direction, PageRequest, RegistryError, WorkerFilter, WorkerView};

use crate::{Engine, EngineError};

/// Workers read at once.
const PAGE_LEN: usize = 1_000;

impl Engine {
    /// Refuses a new worker of a namespace that has as many as it may have. One that is known may always come
    /// back.
    pub(crate) async fn has_room_for(&self, id: WorkerId, namespace: &Name) -> Result<(), EngineError> {
        let filter = WorkerFilter { status: Some(WorkerStatus::Online), task_queue: None };
        let page = PageRequest { from: None, direction: Direction::Next, limit: 1 };
        let (_, online) = self.store().workers(namespace, &filter, &page).await?;
        let max = self.settings().workers_online_max;
        if online.count < u64::from(max) || self.store().worker_by_id(namespace, id).await?.is_some() {
            return Ok(());
        }
        Err(RegistryError::TooMany { namespace: namespace.clone(), max }.into())
    }

    /// Every worker that is online or draining, on one queue or on all. However many have gone offline since
    /// does not hide them.
    pub async fn living_workers(
        &self,
        namespace: &Name,
        task_queue: Option<&Name>,
    ) -> Result<Vec<WorkerView>, EngineError> {
        let mut found = Vec::new();
        for status in [WorkerStatus::Online, WorkerStatus::Draining] {
            let filter = WorkerFilter { status: Some(status), task_queue: task_queue.cloned() };
            let mut from = None;
            loop {
                let page = PageRequest { from, direction: Direction::Next, limit: PAGE_LEN };
                let (page, _) = self.store().workers(namespace, &filter, &page).await?;
                let last = page.rows.last().map(|view| &view.worker);
                from = last.map(|worker| Cursor { at: worker.registered_at, id: worker.id.0 });
                found.extend(page.rows);
                if !page.has_next {
                    break;
                }
            }
        }
        Ok(found)
    }
}
