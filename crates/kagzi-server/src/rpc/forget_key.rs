//! ForgetKey: nothing is kept of a shared key.

use kagzi_engine::Engine;
use kagzi_model::ForgetKey;
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, status::from_engine, wire};

pub async fn handle(engine: &Engine, request: v1::ForgetKeyRequest) -> Result<v1::ForgetKeyResponse, Status> {
    let rule = ForgetKey {
        namespace: check::namespace(&request.namespace_id)?,
        key: wire::read_key(&request.key)?,
        if_expired: false,
    };
    engine.change_noun(rule).await.map_err(from_engine)?;
    Ok(v1::ForgetKeyResponse {})
}
