//! BackfillSchedule: runs for the times of a past range.

use kagzi_engine::Engine;
use kagzi_model::{
    moment,
    schedule::{Backfill, ScheduleCommand, ScheduleRequest},
};
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
    let now = engine.clock().now();
    let to = to.unwrap_or(now);
    if after.0 < 0 {
        return Err(invalid("from", from, "it must be in 1970 or later"));
    }
    if after >= to {
        let rule = format!("it must be before to, which is {}", moment(to));
        return Err(invalid("from", moment(after), rule));
    }
    if to > now {
        let rule = format!("it is in the future; it must be the present, {}, or before", moment(now));
        return Err(invalid("to", moment(to), rule));
    }
    let command = ScheduleCommand::Backfill(Backfill { after, to, at_once: !request.one_by_one });
    let reply = engine.schedule(ScheduleRequest { key, command }).await.map_err(from_engine)?;
    let timetable = reply.schedule.plan.timing.timetable();
    Ok(v1::BackfillScheduleResponse { times: timetable.map_or(0, |table| table.count(after, to)) })
}
