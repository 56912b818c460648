//! ListWorkflowRuns: filtered, ordered, in pages that go both ways.

use kagzi_engine::Engine;
use kagzi_model::{Name, REASONS, Run, Status as RunStatus, limits::LABELS_MAX};
use kagzi_proto::v1;
use kagzi_store::{Direction, OrderBy, RunFilter, RunOrder, TimeRange};
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
    let filter = read(&request)?;
    let query = format!("runs {namespace:?} {filter:?}");
    let limit = check::page_size(request.page_size, 50, 1_000)?;
    let page = page_token::read(&request.page_token, &query, limit)?;
    let found = engine.store().runs(&namespace, &filter, &page).await;
    let found = found.map_err(|error| from_engine(error.into()))?;
    let total = match request.include_total {
        false => None,
        true => {
            let total = engine.store().count_runs(&namespace, &filter).await;
            Some(total.map_err(|error| from_engine(error.into()))?)
        }
    };
    let token =
        |direction, wanted: bool, run: Option<&Run>| match run.and_then(|run| filter.order.cursor(run)) {
            Some(cursor) if wanted => page_token::write(direction, cursor, &query),
            Some(_) | None => String::new(),
        };
    Ok(v1::ListWorkflowRunsResponse {
        next_page_token: token(Direction::Next, found.has_next, found.rows.last()),
        prev_page_token: token(Direction::Prev, found.has_prev, found.rows.first()),
        has_more: found.has_next,
        total_count: total.map_or(0, |total| total.count),
        total_capped: total.is_some_and(|total| total.capped),
        workflow_runs: found.rows.into_iter().map(|run| wire::run(run, None, None)).collect(),
    })
}

fn read(request: &v1::ListWorkflowRunsRequest) -> Result<RunFilter, Status> {
    Ok(RunFilter {
        statuses: statuses(request)?,
        workflow_type: check::optional_name("workflow_type", &request.workflow_type)?,
        task_queue: check::optional_name("task_queue", &request.task_queue)?,
        error_code: check::optional_name("error_code", &request.error_code)?,
        reason: reason(&request.reason)?,
        schedule: check::optional_name("schedule_id", &request.schedule_id)?,
        business_id: check::optional_name("business_id", &request.business_id)?,
        business_id_prefix: check::optional_name("business_id_prefix", &request.business_id_prefix)?,
        labels: labels(request)?,
        created: range("created", request.created_from.as_ref(), request.created_to.as_ref())?,
        finished: range("finished", request.finished_from.as_ref(), request.finished_to.as_ref())?,
        order: RunOrder { by: order(request.order)?, ascending: request.ascending },
    })
}

fn statuses(request: &v1::ListWorkflowRunsRequest) -> Result<Vec<RunStatus>, Status> {
    let one = Some(("status", request.status)).filter(|(_, number)| *number != 0);
    let several = request.statuses.iter().map(|number| ("statuses", *number));
    let mut statuses = several
        .chain(one)
        .map(|(field, number)| {
            let known = RunStatus::from_number(i64::from(number));
            known.ok_or_else(|| invalid(field, number, "it must be a WorkflowStatus"))
        })
        .collect::<Result<Vec<_>, _>>()?;
    // One order, so that a page token fits the same set however it was written.
    statuses.sort_unstable();
    statuses.dedup();
    Ok(statuses)
}

fn labels(request: &v1::ListWorkflowRunsRequest) -> Result<Vec<(Name, Name)>, Status> {
    let wanted = &request.labels;
    if wanted.len() > LABELS_MAX {
        return Err(invalid("labels", wanted.len(), format_args!("at most {LABELS_MAX} are allowed")));
    }
    let mut labels =
        wanted.iter().map(|(name, value)| check::label(name, value)).collect::<Result<Vec<_>, _>>()?;
    labels.sort_unstable();
    Ok(labels)
}

fn range(
    field: &str,
    from: Option<&prost_types::Timestamp>,
    to: Option<&prost_types::Timestamp>,
) -> Result<TimeRange, Status> {
    let read = |end: &str, at: Option<&prost_types::Timestamp>| {
        at.map(|at| wire::read_timestamp(&format!("{field}_{end}"), at)).transpose()
    };
    Ok(TimeRange { from: read("from", from)?, to: read("to", to)? })
}

fn order(number: i32) -> Result<OrderBy, Status> {
    match v1::RunOrder::try_from(number) {
        Ok(v1::RunOrder::Unspecified | v1::RunOrder::Created) => Ok(OrderBy::CreatedAt),
        Ok(v1::RunOrder::Finished) => Ok(OrderBy::FinishedAt),
        Err(_) => Err(invalid("order", number, "it must be a RunOrder")),
    }
}

fn reason(name: &str) -> Result<Option<Name>, Status> {
    if name.is_empty() {
        return Ok(None);
    }
    if REASONS.iter().any(|(known, _)| *known == name) {
        return Ok(Some(Name::from(name)));
    }
    let known = REASONS.map(|(known, _)| known).join(", ");
    Err(invalid("reason", name, format_args!("it must be one of {known}")))
}
