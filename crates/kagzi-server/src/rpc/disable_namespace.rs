//! DisableNamespace: no new runs from now on.

use kagzi_engine::Engine;
use kagzi_model::NamespaceCommand;
use kagzi_proto::v1;
use tonic::Status;

use super::get_namespace;
use crate::{check, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::DisableNamespaceRequest,
) -> Result<v1::DisableNamespaceResponse, Status> {
    let name = check::namespace(&request.namespace_id)?;
    let command =
        NamespaceCommand::Disable { by: wire::read_by(&request.by)?, note: check::note(&request.note)? };
    let row = engine.change_namespace(name, command).await.map_err(from_engine)?;
    Ok(v1::DisableNamespaceResponse { namespace: Some(get_namespace::shown(engine, row).await?) })
}
