//! CancelIntervention: the question is taken back, and its wait fails.

use kagzi_engine::Engine;
use kagzi_model::intervention::InterventionCommand;
use kagzi_proto::v1;
use tonic::Status;

use super::get_intervention::changed;
use crate::check;

pub async fn handle(
    engine: &Engine,
    request: v1::CancelInterventionRequest,
) -> Result<v1::CancelInterventionResponse, Status> {
    let key = check::intervention_key(&request.namespace_id, &request.intervention_id)?;
    let by = check::name("by", &request.by)?;
    let command = InterventionCommand::Cancel { by, why: check::note(&request.reason)? };
    let (intervention, _) = changed(engine, &key, command).await?;
    Ok(v1::CancelInterventionResponse { intervention: Some(intervention) })
}
