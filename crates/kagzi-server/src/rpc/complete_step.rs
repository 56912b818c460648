//! CompleteStep: a result is recorded once.

use kagzi_engine::Engine;
use kagzi_model::{Done, StepResult, act};
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, services::limits, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::CompleteStepRequest,
) -> Result<v1::CompleteStepResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let lease = wire::read_lease(&namespace, request.lease.as_ref(), (&request.run_id, request.lease_epoch))?;
    let step = wire::read_step(request.step.as_ref(), &request.step_id, request.position)?;
    let spelled_out = || v1::Payload { data: request.output, content_type: request.content_type };
    let payload = request.result.unwrap_or_else(spelled_out);
    let result = check::payload(limits(engine), "output", Some(payload))?;
    // The record counts attempts itself, so 0 means "the next one".
    let result = StepResult { step, attempt: 0, result, elapsed_ms: 0 };
    let report = engine.report(&lease, act::RecordStep(result));
    let Done { already } = report.await.map_err(from_engine)?;
    Ok(v1::CompleteStepResponse { already_recorded: already })
}
