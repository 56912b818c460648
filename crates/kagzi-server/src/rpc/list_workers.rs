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
        status: status(&request)?,
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
        total_count: total.count,
        total_capped: total.capped,
        workers: answered.items,
        unreadable_count: answered.unreadable,
    })
}

/// By its number, or by the name that the mission's clients send.
fn status(request: &v1::ListWorkersRequest) -> Result<Option<WorkerStatus>, Status> {
    let named = match request.filter_status.as_str() {
        "" => None,
        name => Some(
            WorkerStatus::from_name(name)
                .ok_or_else(|| invalid("filter_status", name, "it must be ONLINE, DRAINING or OFFLINE"))?,
        ),
    };
    let numbered = match v1::WorkerStatus::try_from(request.status) {
        Ok(v1::WorkerStatus::Unspecified) => None,
        Ok(status) => WorkerStatus::from_name(&status.word()),
        Err(_) => {
            let rule = "it must be a WorkerStatus, 1 (ONLINE) to 3 (OFFLINE)";
            return Err(invalid("status", request.status, rule));
        }
    };
    match (numbered, named) {
        (Some(one), Some(other)) if one != other => {
            Err(invalid("filter_status", &request.filter_status, "status is set too; set one of them"))
        }
        (numbered, named) => Ok(numbered.or(named)),
    }
}
