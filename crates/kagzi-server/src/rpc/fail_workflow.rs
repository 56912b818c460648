//! FailWorkflow: the run ends with an error.

use kagzi_engine::Engine;
use kagzi_model::{RunFailed, act};
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::FailWorkflowRequest,
) -> Result<v1::FailWorkflowResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let lease = wire::read_lease(&namespace, request.lease.as_ref(), (&request.run_id, request.lease_epoch))?;
    let spelled_out = || v1::Failure {
        code: request.error_code,
        message: request.error,
        non_retryable: request.non_retryable,
        ..v1::Failure::default()
    };
    let failure = wire::read_failure(Some(request.failure.unwrap_or_else(spelled_out)));
    let report = engine.report(&lease, act::Fail { failure, step: None });
    let RunFailed { retry_at } = report.await.map_err(from_engine)?;
    Ok(v1::FailWorkflowResponse {
        scheduled_retry: retry_at.is_some(),
        retry_in_ms: retry_at.map_or(0, |at| at.remaining_ms(engine.clock().now())),
    })
}
