//! FailStep: a failed attempt; the answer says what happens next.

use kagzi_engine::Engine;
use kagzi_model::{Attempted, act};
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, status::from_engine, wire};

pub async fn handle(engine: &Engine, request: v1::FailStepRequest) -> Result<v1::FailStepResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let lease = wire::read_lease(&namespace, request.lease.as_ref(), (&request.run_id, request.lease_epoch))?;
    let step = wire::read_step(request.step.as_ref(), &request.step_id, request.position)?;
    let spelled_out = || v1::Failure {
        code: request.error_code,
        message: request.error,
        non_retryable: request.non_retryable,
        retry_after_ms: request.retry_after_ms,
        ..v1::Failure::default()
    };
    let failure = wire::read_failure(Some(request.failure.unwrap_or_else(spelled_out)));
    let policy = check::retry_policy(request.retry_policy)?;
    // Without a stream nothing else of the run can be executing, so the lease ends with the retry.
    let failed = act::FailStep { step, attempt: 0, failure, policy, elapsed_ms: 0, park: true };
    Ok(match engine.report(&lease, failed).await.map_err(from_engine)? {
        Attempted::Retry { at, attempt } => v1::FailStepResponse {
            scheduled_retry: true,
            retry_at: Some(wire::timestamp(at)),
            retry_in_ms: at.remaining_ms(engine.clock().now()),
            attempt,
            finality: 0,
        },
        Attempted::Final { attempts, finality } => v1::FailStepResponse {
            attempt: attempts,
            finality: wire::finality(finality),
            ..v1::FailStepResponse::default()
        },
    })
}
