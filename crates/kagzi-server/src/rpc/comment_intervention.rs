//! CommentIntervention: somebody says something to the others.

use kagzi_engine::Engine;
use kagzi_model::intervention::InterventionCommand;
use kagzi_proto::v1;
use tonic::Status;

use super::get_intervention::changed;
use crate::check;

pub async fn handle(
    engine: &Engine,
    request: v1::CommentInterventionRequest,
) -> Result<v1::CommentInterventionResponse, Status> {
    let key = check::intervention_key(&request.namespace_id, &request.intervention_id)?;
    let text = check::note(&request.text)?;
    if text.is_empty() {
        return Err(check::invalid("text", "", "it must say something"));
    }
    let command = InterventionCommand::Comment { by: check::name("by", &request.by)?, text };
    let (intervention, _) = changed(engine, &key, command).await?;
    Ok(v1::CommentInterventionResponse { intervention: Some(intervention) })
}
