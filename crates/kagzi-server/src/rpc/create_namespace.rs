//! CreateNamespace: a namespace with its own defaults and limits.

use kagzi_engine::Engine;
use kagzi_model::{GateCommand, NamespaceCommand};
use kagzi_proto::v1;
use tonic::Status;

use super::get_namespace;
use crate::{check, services::heartbeat_interval_ms, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::CreateNamespaceRequest,
) -> Result<v1::CreateNamespaceResponse, Status> {
    let name = check::name("namespace_id", &request.namespace_id)?;
    let values = request.values.unwrap_or_default();
    let limit = values.max_concurrent.map(check::gate_limit).transpose()?;
    // The limit is that of the gate before all its queues, and is there with the namespace or not at all.
    let gate = limit.map(|limit| GateCommand::Limit { max_concurrent: Some(limit) });
    let change = wire::read_values(values, heartbeat_interval_ms(engine))?;
    let row = engine.change_namespace_and_gate(name, NamespaceCommand::Create(change), gate).await;
    let row = row.map_err(from_engine)?;
    Ok(v1::CreateNamespaceResponse { namespace: Some(get_namespace::shown(engine, row).await?) })
}
