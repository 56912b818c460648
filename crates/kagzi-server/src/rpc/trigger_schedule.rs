//! TriggerSchedule: a run outside the timetable.

use kagzi_engine::Engine;
use kagzi_model::{
    Name,
    schedule::{ScheduleCommand, ScheduleRequest},
};
use kagzi_proto::{Reason, v1};
use tonic::Status;

use super::schedule_spec;
use crate::{
    check::{self, invalid},
    status::{from_engine, from_engine_once},
};

/// With the schedule's id it must fit into a business id.
const TRIGGER_ID_BYTES_MAX: usize = 64;

pub async fn handle(
    engine: &Engine,
    request: v1::TriggerScheduleRequest,
) -> Result<v1::TriggerScheduleResponse, Status> {
    let key = schedule_spec::key(&request.namespace_id, &request.schedule_id)?;
    let run = Engine::new_run_id();
    let trigger = check::optional_name("trigger_id", &request.trigger_id)?;
    if request.trigger_id.len() > TRIGGER_ID_BYTES_MAX {
        let rule = format!("at most {TRIGGER_ID_BYTES_MAX} bytes are allowed");
        return Err(invalid("trigger_id", &request.trigger_id, rule));
    }
    let trigger = trigger.unwrap_or_else(|| Name::from(run.to_string()));
    let command = ScheduleCommand::Trigger { run, trigger };
    let unanswered = |error| match request.trigger_id.is_empty() {
        true => from_engine_once(error, "set a trigger_id, which names one trigger"),
        false => from_engine(error),
    };
    let reply = engine.schedule(ScheduleRequest { key, command }).await.map_err(unanswered)?;
    let (run, already_exists) = reply.run.ok_or_else(|| {
        Reason::RequestIdTaken.status(format!(
            "trigger_id '{}' was used before the schedule was changed; use another",
            request.trigger_id
        ))
    })?;
    Ok(v1::TriggerScheduleResponse { run_id: run.to_string(), already_exists })
}
