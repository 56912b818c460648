//! ResumeWorkflowRun: a person says "go on now".

use kagzi_engine::Engine;
use kagzi_model::{Ordered, RunKey, act};
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, find, status::from_engine};

pub async fn handle(
    engine: &Engine,
    request: v1::ResumeWorkflowRunRequest,
) -> Result<v1::ResumeWorkflowRunResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let run = find::run_exactly(engine, &namespace, &request.run_id, request.run.as_ref()).await?;
    let by = check::author(&request.reason)?;
    let request = check::request_id(&request.request_id)?;
    let order = engine.order(RunKey::new(namespace, run), by, act::Resume { request });
    let Ordered { status, .. } = order.await.map_err(from_engine)?;
    Ok(v1::ResumeWorkflowRunResponse { status: status as i32 })
}
