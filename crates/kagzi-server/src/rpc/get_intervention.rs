//! GetIntervention: one question, with what people were told about it.

use kagzi_engine::Engine;
use kagzi_model::intervention::{InterventionCommand, InterventionKey, Recorded};
use kagzi_proto::v1;
use tonic::Status;

use crate::{check, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::GetInterventionRequest,
) -> Result<v1::GetInterventionResponse, Status> {
    let key = check::intervention_key(&request.namespace_id, &request.intervention_id)?;
    let row = engine.intervention(&key).await.map_err(from_engine)?;
    let told = engine.store().notices(&key).await.map_err(|error| from_engine(error.into()))?;
    Ok(v1::GetInterventionResponse {
        intervention: Some(wire::intervention(engine.clock().now(), row)),
        notices: told.into_iter().map(wire::notice).collect(),
    })
}

/// Carries out what somebody asks of a question, and shows it as it is then.
pub async fn changed(
    engine: &Engine,
    key: &InterventionKey,
    command: InterventionCommand,
) -> Result<(v1::Intervention, Recorded), Status> {
    let row = engine.intervention(key).await.map_err(from_engine)?;
    let reply = engine.change_intervention(&row, command).await.map_err(from_engine)?;
    Ok((wire::intervention(engine.clock().now(), reply.row), reply.recorded))
}
