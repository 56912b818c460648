//! CompleteWorkflow: the run ends with its output.

use kagzi_engine::Engine;
use kagzi_model::act;
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, services::limits, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::CompleteWorkflowRequest,
) -> Result<v1::CompleteWorkflowResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let lease = wire::read_lease(&namespace, request.lease.as_ref(), (&request.run_id, request.lease_epoch))?;
    let spelled_out = || v1::Payload { data: request.output, content_type: request.content_type };
    let payload = request.result.unwrap_or_else(spelled_out);
    let output = check::payload(limits(engine), "output", Some(payload))?;
    engine.report(&lease, act::Complete { steps: Vec::new(), output }).await.map_err(from_engine)?;
    Ok(v1::CompleteWorkflowResponse {})
}
