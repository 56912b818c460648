//! ListWorkflowRuns: filtered, ordered, in pages that go both ways.

use kagzi_engine::Engine;
use kagzi_model::{Name, Reason, Run, Status as RunStatus, USER_LABEL, limits::LABELS_MAX};
use kagzi_proto::v1;
use kagzi_store::{OrderBy, RunFilter, RunOrder};
use tonic::Status;

use crate::{
    check::{self, invalid},
    page_token, response_budget,
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
    let answered = response_budget::page(found, &page, &query, |run: Run| {
        let cursor = filter.order.cursor(&run).expect("only runs with a place in the order match");
        (cursor, wire::run(run, None, None))
    });
    Ok(v1::ListWorkflowRunsResponse {
        next_page_token: answered.next_page_token,
        prev_page_token: answered.prev_page_token,
        total_count: total.map_or(0, |total| total.count),
        total_capped: total.is_some_and(|total| total.capped),
        workflow_runs: answered.items,
        unreadable_count: answered.unreadable,
    })
}

fn read(request: &v1::ListWorkflowRunsRequest) -> Result<RunFilter, Status> {
    Ok(RunFilter {
        statuses: statuses(request)?,
        workflow_type: check::optional_name("workflow_type", &request.workflow_type)?,
        task_queue: check::optional_name("task_queue", &request.task_queue)?,
        error_code: check::optional_name("error_code", &request.error_code)?,
        reason: reason(request.reason)?,
        schedule: check::optional_name("schedule_id", &request.schedule_id)?,
        business_id: check::optional_name("business_id", &request.business_id)?,
        business_id_prefix: check::optional_name("business_id_prefix", &request.business_id_prefix)?,
        labels: labels(request, check::optional_name("user_id", &request.user_id)?)?,
        created: check::time_range("created_", request.created_from.as_ref(), request.created_to.as_ref())?,
        finished: check::time_range(
            "finished_",
            request.finished_from.as_ref(),
            request.finished_to.as_ref(),
        )?,
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
            known.ok_or_else(|| {
                invalid(field, number, "it must be a WorkflowStatus, 1 (PENDING) to 9 (COMPENSATING)")
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    // One order, so that a page token fits the same set however it was written.
    statuses.sort_unstable();
    statuses.dedup();
    Ok(statuses)
}

fn labels(request: &v1::ListWorkflowRunsRequest, user: Option<Name>) -> Result<Vec<(Name, Name)>, Status> {
    let wanted = &request.labels;
    if wanted.len() > LABELS_MAX {
        return Err(invalid("labels", wanted.len(), format_args!("at most {LABELS_MAX} are allowed")));
    }
    let mut labels =
        wanted.iter().map(|(name, value)| check::label_of(name, value)).collect::<Result<Vec<_>, _>>()?;
    labels.extend(user.map(|user| (Name::from(USER_LABEL), user)));
    labels.sort_unstable();
    Ok(labels)
}

fn order(number: i32) -> Result<OrderBy, Status> {
    match v1::RunOrder::try_from(number) {
        Ok(v1::RunOrder::Unspecified | v1::RunOrder::Created) => Ok(OrderBy::CreatedAt),
        Ok(v1::RunOrder::Finished) => Ok(OrderBy::FinishedAt),
        Err(_) => Err(invalid("order", number, "it must be a RunOrder, 1 (by creation) or 2 (by end)")),
    }
}

fn reason(number: i32) -> Result<Option<Name>, Status> {
    let word = match v1::WaitReason::try_from(number) {
        Ok(v1::WaitReason::Unspecified) => return Ok(None),
        Ok(reason) => reason.word(),
        Err(_) => String::new(),
    };
    match Reason::from_name(&word) {
        Some(known) => Ok(Some(Name::from(known.name()))),
        None => Err(invalid("reason", number, "it must be a WaitReason by which runs are found")),
    }
}
