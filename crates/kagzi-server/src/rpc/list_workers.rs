//! ListWorkers: newest first, in pages that go both ways, with a true total.

use kagzi_engine::Engine;
use kagzi_model::WorkerStatus;
use kagzi_proto::v1;
use kagzi_store::{Cursor, WorkerFilter, WorkerView};
use tonic::Status;

use crate::{
    check::{self, invalid},
    page_token, response_budget,
    status::from_engine,
    wire,
};

pub async fn handle(
    engine: &Engine,
    request: v1::ListWorkersRequest,
) -> Result<v1::ListWorkersResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let filter = WorkerFilter {
        status: status(&request.filter_status)?,
        task_queue: check::optional_name("task_queue", &request.task_queue)?,
    };
    let query = format!("workers {namespace:?} {filter:?}");
    let limit = check::page_size(request.page_size, 50, 1_000)?;
    let page = page_token::read(&request.page_token, &query, limit)?;
    let found = engine.store().workers(&namespace, &filter, &page).await;
    let (found, total) = found.map_err(|error| from_engine(error.into()))?;
    let answered = response_budget::page(found, &page, &query, |view: WorkerView| {
        let cursor = Cursor { at: view.worker.registered_at, id: view.worker.id.0 };
        (cursor, wire::worker(view))
    });
    Ok(v1::ListWorkersResponse {
        next_page_token: answered.next_page_token,
        prev_page_token: answered.prev_page_token,
        total_count: i32::try_from(total.count).unwrap_or(i32::MAX),
        total_capped: total.capped,
        workers: answered.items,
    })
}

fn status(name: &str) -> Result<Option<WorkerStatus>, Status> {
    if name.is_empty() {
        return Ok(None);
    }
    let known = WorkerStatus::from_name(name);
    known.map(Some).ok_or_else(|| invalid("filter_status", name, "it must be ONLINE, DRAINING or OFFLINE"))
}
