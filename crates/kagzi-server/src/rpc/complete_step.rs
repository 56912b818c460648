//! CompleteStep: a result is recorded once.

use kagzi_engine::Engine;
use kagzi_model::{Command, Reply};
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, services::limits, status::from_engine};

pub async fn handle(
    engine: &Engine,
    request: v1::CompleteStepRequest,
) -> Result<v1::CompleteStepResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let lease = check::lease(&namespace, &request.run_id, request.lease_epoch)?;
    let step = check::step(&request.step_id, request.position)?;
    let payload = v1::Payload { data: request.output, content_type: request.content_type };
    let result = check::payload(limits(engine), "output", Some(payload))?;
    // The record counts attempts itself, so 0 means "the next one".
    let command = Command::RecordStep { lease, step, attempt: 0, result, elapsed_ms: 0 };
    match engine.apply_one(command).await.map_err(from_engine)? {
        Reply::Done { already } => Ok(v1::CompleteStepResponse { already_recorded: already }),
        other => Err(Status::internal(format!("a result was answered with {other:?}"))),
    }
}
