//! RestartWorkflowRun: a new run with the type, queue, input and options of another.

use kagzi_engine::Engine;
use kagzi_model::{RunOptions, StartRun};
use kagzi_proto::{Reason, v1};
use tonic::Status;

use super::start_workflow::{self, Beginning};
use crate::{check, find, status::from_engine};

pub async fn handle(
    engine: &Engine,
    request: v1::RestartWorkflowRunRequest,
) -> Result<v1::RestartWorkflowRunResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let beginning = Beginning::read(
        &request.request_id,
        request.start_at.as_ref(),
        request.start_delay_ms,
        engine.clock().now(),
    )?;
    let reuse = start_workflow::id_reuse(request.id_reuse)?;
    let former = find::run_exactly(engine, &namespace, &request.run_id, request.run.as_ref()).await?;
    let view = engine.read_run(&namespace, former).await.map_err(from_engine)?;
    let Some(input) = view.input else {
        return Err(Reason::InputGone.status(format!("the input of run {former} is no longer kept")));
    };
    let (id, former) = (Engine::new_run_id(), view.run);
    let start = StartRun {
        namespace,
        id,
        business_id: beginning.business_id(check::business_id(&request.business_id)?),
        workflow_type: former.workflow_type,
        task_queue: former.task_queue,
        input,
        // A deadline was a moment; a limit on the execution time begins anew.
        deadline_at: None,
        options: RunOptions {
            start_at: beginning.start_at,
            request: beginning.request,
            reuse,
            ..(*former.options).clone()
        },
        labels: former.labels,
        signals: Vec::new(),
    };
    let repeatable = start_workflow::repeatable(&start);
    let outcomes = engine.start_runs(vec![start]).await;
    let mut outcomes = outcomes.map_err(|error| start_workflow::unstarted(error, repeatable))?;
    let started = start_workflow::answer(outcomes.pop().expect("one start has one outcome"))?;
    Ok(v1::RestartWorkflowRunResponse { run_id: started.run_id, already_exists: started.already_exists })
}
