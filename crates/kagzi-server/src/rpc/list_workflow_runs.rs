//! ListWorkflowRuns: newest first, in pages that go both ways.

use kagzi_engine::Engine;
use kagzi_model::{Name, Run, Status as RunStatus};
use kagzi_proto::v1;
use kagzi_store::{Cursor, Direction, RunFilter};
use tonic::Status;

use crate::{
    check::{self, invalid},
    page_token,
    status::from_engine,
    wire,
};

pub async fn handle(
    engine: &Engine,
    request: v1::ListWorkflowRunsRequest,
) -> Result<v1::ListWorkflowRunsResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let filter = RunFilter {
        status: status(request.status)?,
        workflow_type: check::optional_name("workflow_type", &request.workflow_type)?,
        task_queue: check::optional_name("task_queue", &request.task_queue)?,
        error_code: check::optional_name("error_code", &request.error_code)?,
        reason: reason(&request.reason)?,
        schedule: check::optional_name("schedule_id", &request.schedule_id)?,
    };
    let query = format!("runs {namespace:?} {filter:?}");
    let limit = check::page_size(request.page_size, 50, 1_000)?;
    let page = page_token::read(&request.page_token, &query, limit)?;
    let found = engine.store().runs(&namespace, &filter, &page).await;
    let found = found.map_err(|error| from_engine(error.into()))?;
    let token = |direction, wanted: bool, run: Option<&Run>| match run {
        Some(run) if wanted => {
            page_token::write(direction, Cursor { at: run.created_at, id: run.id.0 }, &query)
        }
        Some(_) | None => String::new(),
    };
    Ok(v1::ListWorkflowRunsResponse {
        next_page_token: token(Direction::Next, found.has_next, found.rows.last()),
        prev_page_token: token(Direction::Prev, found.has_prev, found.rows.first()),
        has_more: found.has_next,
        workflow_runs: found.rows.into_iter().map(|run| wire::run(run, None, None)).collect(),
    })
}

fn reason(name: &str) -> Result<Option<Name>, Status> {
    match name {
        "" => Ok(None),
        "ready" | "leased" | "timer" | "retry" | "paused" => Ok(Some(Name::from(name))),
        other => Err(invalid("reason", other, "it must be ready, leased, timer, retry or paused")),
    }
}

fn status(number: i32) -> Result<Option<RunStatus>, Status> {
    if number == 0 {
        return Ok(None);
    }
    let known = RunStatus::from_number(i64::from(number));
    known.map(Some).ok_or_else(|| invalid("status", number, "it must be a WorkflowStatus"))
}
