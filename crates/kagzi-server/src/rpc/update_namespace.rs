//! UpdateNamespace: changes the fields that are set.

use kagzi_engine::Engine;
use kagzi_model::{GateCommand, NamespaceCommand, NamespaceField};
use kagzi_proto::v1;
use tonic::Status;

use super::get_namespace;
use crate::{
    check::{self, invalid},
    services::heartbeat_interval_ms,
    status::from_engine,
    wire,
};

/// The field that is not the namespace's own but that of the gate before it.
const LIMIT: &str = "max_concurrent";

pub async fn handle(
    engine: &Engine,
    request: v1::UpdateNamespaceRequest,
) -> Result<v1::UpdateNamespaceResponse, Status> {
    let name = check::namespace(&request.namespace_id)?;
    let values = request.values.unwrap_or_default();
    let max_concurrent = values.max_concurrent.map(check::gate_limit).transpose()?;
    let mut change = wire::read_values(values, heartbeat_interval_ms(engine))?;
    let mut unlimited = false;
    for field in &request.clear {
        match NamespaceField::ALL.into_iter().find(|known| known.name() == field) {
            Some(known) => change.clear.push(known),
            None if field == LIMIT => unlimited = true,
            None => {
                let names = NamespaceField::ALL.map(NamespaceField::name).join(", ");
                return Err(invalid("clear", field, format_args!("it must be one of {names}, {LIMIT}")));
            }
        }
    }
    let limited = unlimited || max_concurrent.is_some();
    let gate = limited.then_some(GateCommand::Limit { max_concurrent });
    let command = NamespaceCommand::Update(change);
    engine.change_namespace_and_gate(name.clone(), command, gate).await.map_err(from_engine)?;
    let row = engine.read_namespace(&name).await.map_err(from_engine)?;
    Ok(v1::UpdateNamespaceResponse { namespace: Some(get_namespace::shown(engine, row).await?) })
}
