//! MakePromise: a unary worker makes a promise and is given its token.

use kagzi_engine::{Engine, Outline};
use kagzi_model::{Event, EventKind, Name, Payload, Projection, act};
use kagzi_proto::{PromiseToken, Reason, v1};
use tonic::Status;

use super::complete_promise::promise_name;
use crate::{check, status::from_engine};

pub async fn handle(
    engine: &Engine,
    request: v1::MakePromiseRequest,
) -> Result<v1::MakePromiseResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let lease = check::lease_ref(&namespace, request.lease.as_ref())?;
    let named = request.step.unwrap_or_default();
    let step = check::step(&named.path, named.position)?;
    let name = promise_name(&request.name)?;
    let drawn = PromiseToken { run: lease.run.0, name: name.to_string(), secret: PromiseToken::new_secret() };
    let made = act::MakePromise {
        step: step.clone(),
        name: name.clone(),
        token_hash: Name::from(drawn.hash()),
        secret: Payload::new(drawn.secret_text().into_bytes()),
        timeout_ms: check::wait_ms("timeout_ms", request.timeout_ms)?,
        heartbeat_ms: check::heartbeat_ms(request.heartbeat_ms)?,
    };
    engine.report(&lease, made).await.map_err(from_engine)?;
    // Read back: a repeat is given the token that the first one made.
    let view = Made { step: step.path, seq: None };
    let found = Outline::read(engine, (&namespace, lease.run), view, 0).await.map_err(from_engine)?;
    let seq = found.view.seq.unwrap_or_default();
    let secret = engine.payloads(&namespace, lease.run, &[seq]).await.map_err(from_engine)?.remove(&seq);
    let text = secret.map(|secret| String::from_utf8_lossy(&secret.data).into_owned());
    let secret = text.as_deref().and_then(PromiseToken::read_secret).ok_or_else(|| {
        Reason::StepDecided.status("the promise was made by a worker whose codecs this server does not have")
    })?;
    Ok(v1::MakePromiseResponse { token: PromiseToken { secret, ..drawn }.text() })
}

/// Finds the event that made the promise.
struct Made {
    step: Name,
    seq: Option<u64>,
}

impl Projection for Made {
    fn absorb(&mut self, event: &Event) {
        if let EventKind::PromiseMade { step, .. } = &event.kind
            && *step == self.step
        {
            self.seq = Some(event.seq);
        }
    }
}
