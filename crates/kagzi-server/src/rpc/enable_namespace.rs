//! EnableNamespace: new runs again.

use kagzi_engine::Engine;
use kagzi_model::NamespaceCommand;
use kagzi_proto::v1;
use tonic::Status;

use super::get_namespace;
use crate::{check, status::from_engine};

pub async fn handle(
    engine: &Engine,
    request: v1::EnableNamespaceRequest,
) -> Result<v1::EnableNamespaceResponse, Status> {
    let name = check::namespace(&request.namespace_id)?;
    let row = engine.change_namespace(name, NamespaceCommand::Enable).await.map_err(from_engine)?;
    Ok(v1::EnableNamespaceResponse { namespace: Some(get_namespace::shown(engine, row).await?) })
}
