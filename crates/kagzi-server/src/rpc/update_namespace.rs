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

pub async fn handle(
    engine: &Engine,
    request: v1::UpdateNamespaceRequest,
) -> Result<v1::UpdateNamespaceResponse, Status> {
    let name = check::namespace(&request.namespace_id)?;
    let values = request.values.unwrap_or_default();
    let max_concurrent = values.max_concurrent.map(check::gate_limit).transpose()?;
    let mut change = wire::read_values(values, heartbeat_interval_ms(engine))?;
    let mut unlimited = false;
    for number in &request.clear {
        match v1::NamespaceField::try_from(*number) {
            Ok(v1::NamespaceField::RetryPolicy) => change.clear.push(NamespaceField::RetryPolicy),
            Ok(v1::NamespaceField::Timeouts) => change.clear.push(NamespaceField::Timeouts),
            Ok(v1::NamespaceField::Retention) => change.clear.push(NamespaceField::Retention),
            Ok(v1::NamespaceField::FailureHandlerQueue) => {
                change.clear.push(NamespaceField::FailureHandlerQueue)
            }
            // It is not the namespace's own field but that of the gate before it.
            Ok(v1::NamespaceField::MaxConcurrent) => unlimited = true,
            Ok(v1::NamespaceField::Unspecified) | Err(_) => {
                let rule = "it must be a NamespaceField, 1 (RETRY_POLICY) to 5 (FAILURE_HANDLER_QUEUE)";
                return Err(invalid("clear", number, rule));
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
