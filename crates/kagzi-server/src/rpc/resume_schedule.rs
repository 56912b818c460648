//! ResumeSchedule: go on, with or without what was missed.

use kagzi_engine::Engine;
use kagzi_model::schedule::{ScheduleCommand, ScheduleRequest};
use kagzi_proto::v1;
use tonic::Status;

use super::schedule_spec;
use crate::{status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::ResumeScheduleRequest,
) -> Result<v1::ResumeScheduleResponse, Status> {
    let key = schedule_spec::key(&request.namespace_id, &request.schedule_id)?;
    let command = ScheduleCommand::Resume { catch_up: request.catch_up };
    let reply = engine.schedule(ScheduleRequest { key, command }).await.map_err(from_engine)?;
    Ok(v1::ResumeScheduleResponse { schedule: Some(wire::schedule(reply.schedule, false)) })
}
