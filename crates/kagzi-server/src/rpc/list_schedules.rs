//! ListSchedules: newest first, in pages that go both ways.

use kagzi_engine::Engine;
use kagzi_model::schedule::Schedule;
use kagzi_proto::v1;
use kagzi_store::{Cursor, ScheduleFilter};
use tonic::Status;

use crate::{check, page_token, response_budget, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::ListSchedulesRequest,
) -> Result<v1::ListSchedulesResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let filter = ScheduleFilter {
        workflow_type: check::optional_name("workflow_type", &request.workflow_type)?,
        paused: request.paused,
    };
    let query = format!("schedules {namespace:?} {filter:?}");
    let limit = check::page_size(request.page_size, 50, 1_000)?;
    let page = page_token::read(&request.page_token, &query, limit)?;
    let found = engine.store().schedules(&namespace, &filter, &page).await;
    let found = found.map_err(|error| from_engine(error.into()))?;
    let answered = response_budget::page(found, &page, &query, |row: Schedule| {
        (Cursor { at: row.created_at, id: row.uid }, wire::schedule(row, false))
    });
    Ok(v1::ListSchedulesResponse {
        next_page_token: answered.next_page_token,
        prev_page_token: answered.prev_page_token,
        schedules: answered.items,
    })
}
