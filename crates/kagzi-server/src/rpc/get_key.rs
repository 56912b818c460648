//! GetKey: one shared key, with its result.

use kagzi_engine::Engine;
use kagzi_model::{ReadKey, SharedKey};
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, status::from_engine, wire};

pub async fn handle(engine: &Engine, request: v1::GetKeyRequest) -> Result<v1::GetKeyResponse, Status> {
    let rule =
        ReadKey { namespace: check::namespace(&request.namespace_id)?, key: wire::read_key(&request.key)? };
    let row = engine.change_noun(rule).await.map_err(from_engine)?;
    let key: SharedKey = row.read().map_err(|error| from_engine(error.into()))?;
    Ok(v1::GetKeyResponse { key: Some(wire::shared_key(&row, key, true)) })
}
