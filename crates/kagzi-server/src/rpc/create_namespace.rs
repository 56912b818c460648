//! CreateNamespace: a namespace with its own defaults and limits.

use kagzi_engine::Engine;
use kagzi_model::NamespaceCommand;
use kagzi_proto::{Reason, v1};
use tonic::Status;

use super::{get_namespace, update_namespace};
use crate::{check, services::heartbeat_interval_ms, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::CreateNamespaceRequest,
) -> Result<v1::CreateNamespaceResponse, Status> {
    let name = check::name("namespace_id", &request.namespace_id)?;
    let values = request.values.unwrap_or_default();
    let limit = values.max_concurrent.map(check::gate_limit).transpose()?;
    let change = wire::read_values(values, heartbeat_interval_ms(engine))?;
    let row =
        engine.change_namespace(name.clone(), NamespaceCommand::Create(change)).await.map_err(from_engine)?;
    if limit.is_some() {
        // The limit is a gate of its own. Whoever repeats the whole call would be told that the namespace exists.
        update_namespace::limit(engine, &name, limit).await.map_err(|status| {
            let said = format!(
                "namespace '{name}' was created, but its max_concurrent was not set: {}; set it with UpdateNamespace, or: \
                 kagzi ns update",
                status.message()
            );
            Reason::OutcomeUnknown.status(said)
        })?;
    }
    Ok(v1::CreateNamespaceResponse { namespace: Some(get_namespace::shown(engine, row).await?) })
}
