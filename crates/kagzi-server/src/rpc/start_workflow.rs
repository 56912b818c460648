//! StartWorkflow: one run per business id.

use kagzi_engine::{Engine, EngineError, moment};
use kagzi_model::{Name, OnFailure, Reply, RunOptions, StartRun, Started};
use kagzi_proto::v1;
use kagzi_store::Outcome;
use tonic::Status;

use crate::{
    check::{self, PayloadLimits, invalid},
    services::{heartbeat_interval_ms, limits},
    status::{from_engine, from_engine_once, from_rejection},
    wire,
};

pub async fn handle(
    engine: &Engine,
    request: v1::StartWorkflowRequest,
    trace: Option<Name>,
) -> Result<v1::StartWorkflowResponse, Status> {
    let mut start = read(engine, limits(engine), request)?;
    start.options.trace = trace;
    let repeatable = repeatable(&start);
    let mut outcomes = engine.start_runs(vec![start]).await.map_err(|error| unstarted(error, repeatable))?;
    answer(outcomes.pop().expect("one start has one outcome"))
}

/// Whether a second start with the same request would find the first one's run.
pub fn repeatable(start: &StartRun) -> bool {
    *start.business_id != *start.id.to_string()
}

/// The status for starts that were not answered by the store.
pub fn unstarted(error: EngineError, repeatable: bool) -> Status {
    if repeatable {
        from_engine(error)
    } else {
        from_engine_once(error, "set a business_id, which names one run")
    }
}

/// Checks every field; nothing is started unless all of them are good.
pub fn read(
    engine: &Engine,
    limits: PayloadLimits,
    request: v1::StartWorkflowRequest,
) -> Result<StartRun, Status> {
    let now = engine.clock().now();
    let id = Engine::new_run_id();
    let timeouts = check::timeouts(request.timeouts, heartbeat_interval_ms(engine))?;
    let deadline =
        request.deadline_at.as_ref().map(|at| wire::read_timestamp("deadline_at", at)).transpose()?;
    if let Some(at) = deadline.filter(|at| *at <= now) {
        let rule = format_args!("it must be in the future; now is {}", moment(now));
        return Err(invalid("deadline_at", format_args!("{}", moment(at)), rule));
    }
    let execution_end = timeouts.execution_ms.filter(|ms| *ms > 0).map(|ms| now.plus_ms(ms));
    Ok(StartRun {
        namespace: check::namespace(&request.namespace_id)?,
        id,
        business_id: check::business_id(&request.business_id)?.unwrap_or_else(|| Name::from(id.to_string())),
        workflow_type: check::name("workflow_type", &request.workflow_type)?,
        task_queue: check::name("task_queue", &request.task_queue)?,
        input: check::payload(limits, "input", request.input)?,
        // The earlier of the two wins.
        deadline_at: [deadline, execution_end].into_iter().flatten().min(),
        options: RunOptions {
            // What is left open is filled where the run is created, by its namespace and then by the server.
            retry: check::retry_policy(request.retry_policy)?,
            timeouts,
            run_retry: request
                .run_retry_policy
                .map(|policy| check::retry_policy(Some(policy)))
                .transpose()?,
            on_failure: on_failure(&request.on_failure_workflow, &request.on_failure_task_queue)?,
            ..RunOptions::default()
        },
        labels: check::run_labels(&request.labels)?,
    })
}

pub fn on_failure(workflow_type: &str, task_queue: &str) -> Result<Option<OnFailure>, Status> {
    let task_queue = check::optional_name("on_failure_task_queue", task_queue)?;
    match (check::optional_name("on_failure_workflow", workflow_type)?, task_queue) {
        (Some(workflow_type), task_queue) => Ok(Some(OnFailure { workflow_type, task_queue })),
        (None, None) => Ok(None),
        (None, Some(queue)) => {
            Err(invalid("on_failure_task_queue", &*queue, "it needs an on_failure_workflow beside it"))
        }
    }
}

/// The answer to one start.
pub fn answer(outcome: Outcome) -> Result<v1::StartWorkflowResponse, Status> {
    match outcome {
        Ok(Reply::Started(Started { run, existed })) => {
            Ok(v1::StartWorkflowResponse { run_id: run.to_string(), already_exists: existed })
        }
        Ok(other) => Err(Status::internal(format!("a start was answered with {other:?}"))),
        Err(rejection) => Err(from_rejection(&rejection)),
    }
}
