//! ClaimKey: who does the work under a shared key.

use kagzi_engine::{Engine, EngineError};
use kagzi_model::{
    ClaimKey, KeyHolder, KeyState, Name, NounRow, SharedKey,
    limits::{KEY_LOCK_MS, KEY_LOCK_MS_MIN, KEY_TTL_MS, WAIT_MS_MAX},
};
use kagzi_proto::{Reason, v1};
use tonic::Status;

use crate::{
    check::{self, invalid},
    status::from_engine,
    wire,
};

pub async fn handle(engine: &Engine, request: v1::ClaimKeyRequest) -> Result<v1::ClaimKeyResponse, Status> {
    let holder = wire::read_holder(request.holder)?;
    let lock_ms = match holder {
        KeyHolder::Run { .. } => None,
        KeyHolder::Client { .. } => Some(time("lock_ms", request.lock_ms, KEY_LOCK_MS, KEY_LOCK_MS_MIN)?),
    };
    let claim = ClaimKey {
        namespace: check::namespace(&request.namespace_id)?,
        key: wire::read_key(&request.key)?,
        holder,
        input: check::optional_name("input_hash", &request.input_hash)?.map(|hash| hash.to_string()),
        ttl_ms: time("ttl_ms", request.ttl_ms, KEY_TTL_MS, 1)?,
        lock_ms,
        released: None,
    };
    let (row, key) = claimed(engine, claim.clone()).await?;
    if key.holder != claim.holder && key.conflicts(engine.clock().now(), claim.input.as_deref()) {
        let message = format!("key '{}' is used with another input: its hash is {:?}", claim.key, key.input);
        return Err(Reason::KeyConflict.status(message));
    }
    let claimed = key.is_held_by(&claim.holder, key.fence);
    Ok(v1::ClaimKeyResponse { claimed, key: Some(wire::shared_key(&row, key, true)) })
}

/// The row after the claim. A run that holds the key and has ended holds it no more: that is looked at here,
/// and the claim is repeated with the fence that was seen, so that a holder of in between is not robbed.
async fn claimed(engine: &Engine, claim: ClaimKey) -> Result<(NounRow, SharedKey), Status> {
    let (row, key) = change(engine, claim.clone()).await?;
    let KeyHolder::Run { run, .. } = &key.holder else { return Ok((row, key)) };
    if key.state != KeyState::InProgress || key.holder == claim.holder {
        return Ok((row, key));
    }
    if !has_ended(engine, &claim.namespace, *run).await? {
        return Ok((row, key));
    }
    change(engine, ClaimKey { released: Some(key.fence), ..claim }).await
}

async fn change(engine: &Engine, claim: ClaimKey) -> Result<(NounRow, SharedKey), Status> {
    let row = engine.change_noun(claim).await.map_err(from_engine)?;
    let key = row.read().map_err(|error| from_engine(error.into()))?;
    Ok((row, key))
}

/// Whether the run has ended, or is no longer kept.
async fn has_ended(engine: &Engine, namespace: &Name, run: kagzi_model::RunId) -> Result<bool, Status> {
    match engine.read_run(namespace, run).await {
        Ok(view) => Ok(view.run.state.finished()),
        Err(EngineError::Rejected(kagzi_model::Rejection::NotFound { .. })) => Ok(true),
        Err(error) => Err(from_engine(error)),
    }
}

fn time(field: &str, ms: i64, standard: i64, least: i64) -> Result<i64, Status> {
    match ms {
        0 => Ok(standard),
        ms if (least..=WAIT_MS_MAX).contains(&ms) => Ok(ms),
        ms => Err(invalid(field, ms, format_args!("it must be between {least} and ten years, or 0"))),
    }
}
