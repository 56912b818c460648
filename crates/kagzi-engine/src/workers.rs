//! Who is there: workers by status, all of them.

use kagzi_model::{Name, WorkerStatus};
use kagzi_store::{Cursor, Direction, PageRequest, WorkerFilter, WorkerView};

use crate::{Engine, EngineError};

/// Workers read at once.
const PAGE_LEN: usize = 1_000;

impl Engine {
    /// Every worker that is online or draining, on one queue or on all. However many have gone offline since does not hide
    /// them.
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
