//! CreateSchedule: one schedule per id.

use kagzi_engine::Engine;
use kagzi_model::schedule::{NewSchedule, ScheduleCommand, ScheduleRequest};
use kagzi_proto::v1;
use tonic::Status;

use super::schedule_spec;
use crate::{check, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::CreateScheduleRequest,
) -> Result<v1::CreateScheduleResponse, Status> {
    let key = schedule_spec::key(&request.namespace_id, &request.schedule_id)?;
    let note = check::note(&request.note)?;
    let paused = request.paused.then_some(note);
    let new = NewSchedule { paused, ..schedule_spec::read(engine, request.spec)? };
    let request = ScheduleRequest { key, command: ScheduleCommand::Create(Box::new(new)) };
    let reply = engine.schedule(request).await.map_err(from_engine)?;
    Ok(v1::CreateScheduleResponse {
        already_exists: !reply.changed,
        schedule: Some(wire::schedule(reply.schedule, true)),
    })
}
