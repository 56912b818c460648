//! ReportStepProgress: how far a long step is.

use kagzi_engine::Engine;
use kagzi_model::act;
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, services::limits, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::ReportStepProgressRequest,
) -> Result<v1::ReportStepProgressResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let lease = wire::read_lease(&namespace, request.lease.as_ref(), (&request.run_id, request.lease_epoch))?;
    let step = wire::read_step(request.step.as_ref(), &request.step_id, request.position)?;
    let progress = check::payload(limits(engine), "progress", request.progress)?;
    engine.report(&lease, act::Progress { step, progress }).await.map_err(from_engine)?;
    Ok(v1::ReportStepProgressResponse {})
}
