//! GetStepAttempt: one attempt of one step.

use kagzi_engine::Engine;
use kagzi_proto::{Reason, v1};
use tonic::Status;

use super::list_step_attempts;
use crate::{check, find, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::GetStepAttemptRequest,
) -> Result<v1::GetStepAttemptResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let run = find::run(engine, &namespace, &request.run_id, request.run.as_ref()).await?;
    let step = check::step(&request.step_id, 0)?;
    let (list, _) = list_step_attempts::of_run(engine, &namespace, run).await?;
    let wanted = |attempt: &kagzi_model::StepAttempt| match request.attempt {
        0 => attempt.latest,
        number => attempt.attempt == number,
    };
    let found = list.into_iter().rev().find(|attempt| attempt.path == step.path && wanted(attempt));
    let missing = || {
        Reason::StepNotFound.status(match request.attempt {
            0 => format!("run {run} has no step '{}'; list them with: kagzi run show {run}", step.path),
            number => format!(
                "run {run} has no attempt {number} of step '{}'; list them with: kagzi run show {run}",
                step.path
            ),
        })
    };
    let attempt = found.ok_or_else(missing)?;
    let (mut shown, recorded) = wire::step_attempt(run, attempt);
    if let Some(seq) = recorded {
        let mut payloads = engine.payloads(&namespace, run, &[seq]).await.map_err(from_engine)?;
        shown.output = payloads.remove(&seq).map(wire::payload);
    }
    Ok(v1::GetStepAttemptResponse { step_attempt: Some(shown) })
}
