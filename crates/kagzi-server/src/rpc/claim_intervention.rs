//! ClaimIntervention: somebody works on it, and the others are told so.

use kagzi_engine::Engine;
use kagzi_model::intervention::InterventionCommand;
use kagzi_proto::v1;
use tonic::Status;

use super::get_intervention::changed;
use crate::check;

pub async fn handle(
    engine: &Engine,
    request: v1::ClaimInterventionRequest,
) -> Result<v1::ClaimInterventionResponse, Status> {
    let key = check::intervention_key(&request.namespace_id, &request.intervention_id)?;
    let command = InterventionCommand::Claim { by: check::name("by", &request.by)? };
    let (intervention, _) = changed(engine, &key, command).await?;
    Ok(v1::ClaimInterventionResponse { intervention: Some(intervention) })
}
