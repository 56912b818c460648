//! RetryWorkflowRun: a waiting retry begins at once, an ended run goes on from its failed step.

use kagzi_engine::Engine;
use kagzi_model::{Ordered, RunKey, act};
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, find, status::from_engine};

pub async fn handle(
    engine: &Engine,
    request: v1::RetryWorkflowRunRequest,
) -> Result<v1::RetryWorkflowRunResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let run = find::run_exactly(engine, &namespace, &request.run_id, request.run.as_ref()).await?;
    let from = match request.from_step.as_str() {
        "" => None,
        from => Some(check::step(from, 0)?.path),
    };
    let by = check::author(&request.reason)?;
    let request = check::request_id(&request.request_id)?;
    let order = engine.order(RunKey::new(namespace, run), by, act::Retry { from, request });
    let Ordered { status, .. } = order.await.map_err(from_engine)?;
    Ok(v1::RetryWorkflowRunResponse { status: status as i32 })
}
