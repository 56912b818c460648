//! CompletePromise: somebody outside completes a promise, or says that it has failed.

use kagzi_engine::Engine;
use kagzi_model::{Name, RunKey, Signalled, act, limits::PROMISE_NAME_BYTES_MAX};
use kagzi_proto::{PromiseToken, Reason, v1};
use tonic::Status;

use crate::{
    check::{self, invalid},
    find,
    services::limits,
    status::from_engine,
    wire,
};

pub async fn handle(
    engine: &Engine,
    request: v1::CompletePromiseRequest,
) -> Result<v1::CompletePromiseResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let payload = check::payload(limits(engine), "payload", request.payload)?;
    let failure = request.failure.map(|failure| wire::read_failure(Some(failure)));
    let named = promise(engine, &namespace, (&request.token, request.run.as_ref(), &request.name)).await?;
    let Named { key, name, token_hash } = named;
    let (run_id, shown) = (key.id.to_string(), name.to_string());
    let complete = act::CompletePromise { name, token_hash, payload, failure };
    let Signalled { already } = engine.order(key, check::author("")?, complete).await.map_err(from_engine)?;
    Ok(v1::CompletePromiseResponse { already_completed: already, run_id, name: shown })
}

/// A promise, and the right to it.
pub struct Named {
    pub key: RunKey,
    pub name: Name,
    /// None: by the right to tell the run anything.
    pub token_hash: Option<Name>,
}

/// The promise that a request names: by its token, or by run and name.
pub async fn promise(
    engine: &Engine,
    namespace: &Name,
    (token, run, name): (&str, Option<&v1::RunRef>, &str),
) -> Result<Named, Status> {
    if token.is_empty() {
        let name = promise_name(name)?;
        let run = find::run_exactly(engine, namespace, "", run).await?;
        return Ok(Named { key: RunKey::new(namespace.clone(), run), name, token_hash: None });
    }
    if run.is_some() || !name.is_empty() {
        return Err(invalid("name", name, "the token names run and promise; leave run and name out"));
    }
    // The token itself is a secret, so it is not quoted.
    let wrong = || Reason::FieldInvalid.status("token: it is not the token of a promise");
    let token = PromiseToken::read(token).ok_or_else(wrong)?;
    let key = RunKey::new(namespace.clone(), kagzi_model::RunId(token.run));
    Ok(Named { key, name: promise_name(&token.name)?, token_hash: Some(Name::from(token.hash())) })
}

/// The name of a promise.
pub fn promise_name(name: &str) -> Result<Name, Status> {
    if name.len() > PROMISE_NAME_BYTES_MAX {
        return Err(invalid(
            "name",
            name,
            format_args!("at most {PROMISE_NAME_BYTES_MAX} bytes are allowed"),
        ));
    }
    check::name("name", name)
}
