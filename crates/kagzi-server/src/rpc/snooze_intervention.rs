//! SnoozeIntervention: one person does not want to see it for some time.

use kagzi_engine::Engine;
use kagzi_model::intervention::InterventionCommand;
use kagzi_proto::v1;
use tonic::Status;

use super::get_intervention::changed;
use crate::check;

pub async fn handle(
    engine: &Engine,
    request: v1::SnoozeInterventionRequest,
) -> Result<v1::SnoozeInterventionResponse, Status> {
    let key = check::intervention_key(&request.namespace_id, &request.intervention_id)?;
    let Some(ms) = check::wait_ms("duration_ms", Some(request.duration_ms))?.filter(|ms| *ms > 0) else {
        return Err(check::invalid("duration_ms", request.duration_ms, "it must be above 0"));
    };
    let command = InterventionCommand::Snooze { by: check::name("by", &request.by)?, ms };
    let (intervention, _) = changed(engine, &key, command).await?;
    Ok(v1::SnoozeInterventionResponse { intervention: Some(intervention) })
}
