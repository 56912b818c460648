//! PauseSchedule: hold it, with a note for the others.

use kagzi_engine::Engine;
use kagzi_model::schedule::{ScheduleCommand, ScheduleRequest};
use kagzi_proto::v1;
use tonic::Status;

use super::schedule_spec;
use crate::{check, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::PauseScheduleRequest,
) -> Result<v1::PauseScheduleResponse, Status> {
    let key = schedule_spec::key(&request.namespace_id, &request.schedule_id)?;
    let command = ScheduleCommand::Pause { note: check::note(&request.note)? };
    let reply = engine.schedule(ScheduleRequest { key, command }).await.map_err(from_engine)?;
    Ok(v1::PauseScheduleResponse { schedule: Some(wire::schedule(reply.schedule, false)) })
}
