//! FinishKey: how the work under a shared key ended, or that its holder lives.

use kagzi_engine::Engine;
use kagzi_model::{
    FinishKey, KeyOutcome, KeyState, SharedKey,
    limits::{KEY_LOCK_MS_MIN, KEY_RESULT_BYTES_MAX, WAIT_MS_MAX},
};
use kagzi_proto::{Reason, v1};
use tonic::Status;

use crate::{
    check::{self, invalid},
    services::limits,
    status::from_engine,
    wire,
};

pub async fn handle(engine: &Engine, request: v1::FinishKeyRequest) -> Result<v1::FinishKeyResponse, Status> {
    let outcome = match request.outcome {
        Some(v1::finish_key_request::Outcome::Result(result)) => {
            let result = check::payload(limits(engine), "result", Some(result))?;
            if result.data.len() > KEY_RESULT_BYTES_MAX {
                return Err(check::too_large("result", result.data.len(), KEY_RESULT_BYTES_MAX));
            }
            KeyOutcome::Completed { result: wire::kept_result(&result) }
        }
        Some(v1::finish_key_request::Outcome::Failure(failure)) => {
            KeyOutcome::Failed(wire::read_failure(Some(failure)))
        }
        Some(v1::finish_key_request::Outcome::RenewMs(ms)) => {
            if !(KEY_LOCK_MS_MIN..=WAIT_MS_MAX).contains(&ms) {
                let rule = format!("it must be between {KEY_LOCK_MS_MIN} and ten years");
                return Err(invalid("renew_ms", ms, rule));
            }
            KeyOutcome::Renewed { lock_ms: ms }
        }
        None => return Err(invalid("outcome", "", "give a result, a failure or renew_ms")),
    };
    let finish = FinishKey {
        namespace: check::namespace(&request.namespace_id)?,
        key: wire::read_key(&request.key)?,
        holder: wire::read_holder(request.holder)?,
        fence: request.fence,
        outcome,
    };
    let row = engine.change_noun(finish.clone()).await.map_err(from_engine)?;
    let key: SharedKey = row.read().map_err(|error| from_engine(error.into()))?;
    if !took(&finish, &key) {
        let message = format!(
            "key '{}' is no longer held with fence {}: its fence is {}; nothing was written",
            finish.key, finish.fence, key.fence
        );
        return Err(Reason::KeyLost.status(message));
    }
    Ok(v1::FinishKeyResponse { key: Some(wire::shared_key(&row, key, true)) })
}

/// Whether the row says what the holder said: now, or before, when its answer was lost.
fn took(finish: &FinishKey, key: &SharedKey) -> bool {
    let is_theirs = key.fence == finish.fence && key.holder == finish.holder;
    is_theirs
        && match &finish.outcome {
            KeyOutcome::Completed { result } => key.result.as_ref() == Some(result),
            KeyOutcome::Failed(failure) => key.failure.as_ref() == Some(failure),
            KeyOutcome::Renewed { .. } => key.state == KeyState::InProgress,
        }
}
