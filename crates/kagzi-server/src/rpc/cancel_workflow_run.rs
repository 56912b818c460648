//! CancelWorkflowRun: the run ends now; its worker is told.

use kagzi_engine::Engine;
use kagzi_model::{Ordered, RunKey, act};
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, find, status::from_engine};

pub async fn handle(
    engine: &Engine,
    request: v1::CancelWorkflowRunRequest,
) -> Result<v1::CancelWorkflowRunResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let run = find::run_exactly(engine, &namespace, &request.run_id, request.run.as_ref()).await?;
    let by = check::author(&request.reason)?;
    let order = engine.order(RunKey::new(namespace, run), by, act::Cancel);
    let Ordered { status, already } = order.await.map_err(from_engine)?;
    Ok(v1::CancelWorkflowRunResponse { status: status as i32, already_cancelled: already })
}
