//! GetNamespace: one namespace with its limit.

use kagzi_engine::Engine;
use kagzi_model::{GateKey, Name, Namespace};
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::GetNamespaceRequest,
) -> Result<v1::GetNamespaceResponse, Status> {
    let name = check::namespace(&request.namespace_id)?;
    let row = engine.read_namespace(&name).await.map_err(from_engine)?;
    Ok(v1::GetNamespaceResponse { namespace: Some(shown(engine, row).await?) })
}

/// The namespace as clients see it.
pub async fn shown(engine: &Engine, row: Namespace) -> Result<v1::Namespace, Status> {
    let key = GateKey::namespace(&row.name);
    let gates = gates(engine, &row.name).await?;
    Ok(wire::namespace(row, gates.iter().find(|gate| gate.key == key)))
}

/// The gates of a namespace.
pub async fn gates(engine: &Engine, namespace: &Name) -> Result<Vec<kagzi_model::Gate>, Status> {
    engine.store().gates(namespace).await.map_err(|error| from_engine(error.into()))
}
