//! ReleaseIntervention: whoever claimed it does not work on it any more.

use kagzi_engine::Engine;
use kagzi_model::intervention::InterventionCommand;
use kagzi_proto::v1;
use tonic::Status;

use super::get_intervention::changed;
use crate::check;

pub async fn handle(
    engine: &Engine,
    request: v1::ReleaseInterventionRequest,
) -> Result<v1::ReleaseInterventionResponse, Status> {
    let key = check::intervention_key(&request.namespace_id, &request.intervention_id)?;
    let command = InterventionCommand::Release { by: check::name("by", &request.by)? };
    let (intervention, _) = changed(engine, &key, command).await?;
    Ok(v1::ReleaseInterventionResponse { intervention: Some(intervention) })
}
