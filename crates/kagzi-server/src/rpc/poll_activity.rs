//! PollActivity: one run for a worker without a stream.

use kagzi_engine::{Engine, EngineError};
use kagzi_model::Payload;
use kagzi_proto::{Reason, Refusal, v1};
use kagzi_store::{Assignment, RegistryError};
use tonic::Status;

use super::{get_worker, wait_workflow_run::wait_time};
use crate::{
    check::{self, invalid},
    handler_input,
    journal_page::{self, JournalPage},
    response_budget::Room,
    status::from_engine,
    trace::Tracer,
    wire,
};

pub async fn handle(
    engine: &Engine,
    tracer: &Tracer,
    request: v1::PollActivityRequest,
) -> Result<v1::PollActivityResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let id = check::worker_id(&request.worker_id)?;
    let timeout = wait_time(engine, request.timeout_ms)?;
    if request.supported_workflow_types.is_empty() {
        return Err(invalid(
            "supported_workflow_types",
            format_args!("empty"),
            "at least one type must be named",
        ));
    }
    let types = request
        .supported_workflow_types
        .iter()
        .map(|name| check::name("supported_workflow_types", name))
        .collect::<Result<Vec<_>, _>>()?;
    // Read first, whatever else is named: a worker of another namespace must not be polled for.
    let worker = get_worker::read(engine, &namespace, id).await.map_err(|status| match status.code() {
        tonic::Code::NotFound => Reason::WorkerOffline.status(format!(
            "worker {id} is not registered in namespace '{namespace}'; call RegisterWorker first"
        )),
        _ => status,
    })?;
    if !request.task_queue.is_empty() && worker.task_queue != request.task_queue {
        let rule = format!("worker {id} is registered on queue '{}'", worker.task_queue);
        return Err(invalid("task_queue", &request.task_queue, rule));
    }
    let polled = engine.poll(id, types, timeout).await.map_err(|error| match error {
        // The field is this request's; on a stream the same refusal is about another one.
        EngineError::Registry(refused @ RegistryError::UnknownType { .. }) => {
            let message = format!("supported_workflow_types: {refused}");
            let refusal = Refusal::new(Reason::TypeNotRegistered, message);
            refusal.field("supported_workflow_types", refused).status()
        }
        other => from_engine(other),
    });
    let Some(assigned) = polled? else {
        return Ok(v1::PollActivityResponse::default());
    };
    let Assignment { run, input, fresh } = assigned;
    let input = match input {
        Some(input) => Some(input),
        None => engine.read_run(&run.namespace, run.id).await.map_err(from_engine)?.input,
    };
    let input = handler_input::of(engine, &run, input.unwrap_or_else(|| Payload::new(&b""[..]))).await?;
    let journal = match fresh {
        true => JournalPage::default(),
        false => journal_page::read(engine, &run, "", Room::beside(input.data.len())).await?,
    };
    let trace = tracer.leased(&run);
    let now = engine.clock().now();
    Ok(v1::PollActivityResponse {
        schedule_id: run.schedule().map(|id| id.to_string()).unwrap_or_default(),
        generation: run.generation,
        scheduled_at: run.options.scheduled.as_ref().map(|by| wire::timestamp(by.at)),
        run_id: run.id.to_string(),
        workflow_type: run.workflow_type.to_string(),
        workflow_input: input.data,
        input_content_type: input.content_type.to_string(),
        lease: Some(v1::LeaseRef { run_id: run.id.to_string(), epoch: run.epoch }),
        lease_epoch: run.epoch,
        business_id: run.shown_id(),
        journal: journal.entries,
        journal_page_token: journal.next_page_token,
        traceparent: trace.traceparent,
        former_traceparent: trace.former,
        tracestate: trace.tracestate,
        lease_ms: run.lease().map_or(0, |lease| lease.until.remaining_ms(now)),
    })
}
