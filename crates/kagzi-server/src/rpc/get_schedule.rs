//! GetSchedule: one schedule.

use kagzi_engine::Engine;
use kagzi_model::schedule::{Schedule, ScheduleKey, ScheduleRejection};
use kagzi_proto::v1;
use tonic::Status;

use super::schedule_spec;
use crate::{status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::GetScheduleRequest,
) -> Result<v1::GetScheduleResponse, Status> {
    let key = schedule_spec::key(&request.namespace_id, &request.schedule_id)?;
    let found = read(engine, key).await?;
    Ok(v1::GetScheduleResponse { schedule: Some(wire::schedule(found, true)) })
}

/// The schedule, which must exist.
pub async fn read(engine: &Engine, key: ScheduleKey) -> Result<Schedule, Status> {
    let found = engine.store().schedule_by_id(&key.namespace, &key.id).await;
    let found = found.map_err(|error| from_engine(error.into()))?;
    found.ok_or_else(|| from_engine(ScheduleRejection::NotFound { key }.into()))
}
