//! BeatPromise: whoever works on a promise says that he lives.

use kagzi_engine::Engine;
use kagzi_model::act;
use kagzi_proto::v1;
use tonic::Status;

use super::complete_promise::{Named, promise};
use crate::{check, status::from_engine};

pub async fn handle(
    engine: &Engine,
    request: v1::BeatPromiseRequest,
) -> Result<v1::BeatPromiseResponse, Status> {
    let namespace = check::namespace(&request.namespace_id)?;
    let named = promise(engine, &namespace, (&request.token, request.run.as_ref(), &request.name)).await?;
    let Named { key, name, token_hash } = named;
    let beat = act::BeatPromise { name, token_hash };
    engine.order(key, check::author("")?, beat).await.map_err(from_engine)?;
    Ok(v1::BeatPromiseResponse {})
}
