//! ReassignIntervention: other people are asked instead.

use kagzi_engine::Engine;
use kagzi_model::{intervention::InterventionCommand, limits::ASSIGNEES_MAX};
use kagzi_proto::v1;
use tonic::Status;

use super::get_intervention::changed;
use crate::check;

pub async fn handle(
    engine: &Engine,
    request: v1::ReassignInterventionRequest,
) -> Result<v1::ReassignInterventionResponse, Status> {
    let key = check::intervention_key(&request.namespace_id, &request.intervention_id)?;
    let assignees = request.assignees.iter().map(|name| check::name("assignees", name));
    let assignees: Vec<_> = assignees.collect::<Result<_, _>>()?;
    if assignees.len() > ASSIGNEES_MAX {
        let rule = format!("at most {ASSIGNEES_MAX} people and groups are asked");
        return Err(check::invalid("assignees", assignees.len(), rule));
    }
    let command = InterventionCommand::Assign { by: check::name("by", &request.by)?, assignees };
    let (intervention, _) = changed(engine, &key, command).await?;
    Ok(v1::ReassignInterventionResponse { intervention: Some(intervention) })
}
