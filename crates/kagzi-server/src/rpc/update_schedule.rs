//! UpdateSchedule: another spec for the same schedule.

use kagzi_engine::Engine;
use kagzi_model::schedule::{ScheduleCommand, ScheduleRequest};
use kagzi_proto::v1;
use tonic::Status;

use super::schedule_spec;
use crate::{status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::UpdateScheduleRequest,
) -> Result<v1::UpdateScheduleResponse, Status> {
    let key = schedule_spec::key(&request.namespace_id, &request.schedule_id)?;
    let new = Box::new(schedule_spec::read(engine, request.spec)?);
    let if_version = Some(request.if_version).filter(|version| *version > 0);
    let request = ScheduleRequest { key, command: ScheduleCommand::Update { new, if_version } };
    let reply = engine.schedule(request).await.map_err(from_engine)?;
    Ok(v1::UpdateScheduleResponse { schedule: Some(wire::schedule(reply.schedule, true)) })
}
