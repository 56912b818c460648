//! BackfillSchedule: runs for the times of a past range.

use kagzi_engine::Engine;
use kagzi_model::schedule::{Backfill, ScheduleCommand, ScheduleRequest};
use kagzi_proto::v1;
use tonic::Status;

use super::schedule_spec;
use crate::{check::invalid, status::from_engine, wire};

pub async fn handle(
    engine: &Engine,
    request: v1::BackfillScheduleRequest,
) -> Result<v1::BackfillScheduleResponse, Status> {
    let key = schedule_spec::key(&request.namespace_id, &request.schedule_id)?;
    let Some(from) = &request.from else { return Err(invalid("from", "", "it must be set")) };
    let after = wire::read_timestamp("from", from)?;
    let to = request.to.as_ref().map(|to| wire::read_timestamp("to", to)).transpose()?;
    let to = to.unwrap_or_else(|| engine.clock().now());
    let command = ScheduleCommand::Backfill(Backfill { after, to, at_once: !request.one_by_one });
    let reply = engine.schedule(ScheduleRequest { key, command }).await.map_err(from_engine)?;
    let timetable = reply.schedule.plan.timing.timetable();
    Ok(v1::BackfillScheduleResponse { times: timetable.map_or(0, |table| table.count(after, to)) })
}
