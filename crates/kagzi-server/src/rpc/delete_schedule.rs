//! DeleteSchedule: it fires no more.

use kagzi_engine::Engine;
use kagzi_model::schedule::{ScheduleCommand, ScheduleRequest};
use kagzi_proto::v1;
use tonic::Status;

use super::schedule_spec;
use crate::status::from_engine;

pub async fn handle(
    engine: &Engine,
    request: v1::DeleteScheduleRequest,
) -> Result<v1::DeleteScheduleResponse, Status> {
    let key = schedule_spec::key(&request.namespace_id, &request.schedule_id)?;
    let command = ScheduleCommand::Delete;
    engine.schedule(ScheduleRequest { key, command }).await.map_err(from_engine)?;
    Ok(v1::DeleteScheduleResponse {})
}
