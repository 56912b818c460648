//! NextScheduleTimes: when it fires next, in words and in numbers.

use kagzi_engine::Engine;
use kagzi_model::schedule::{ScheduleRejection, Timing};
use kagzi_proto::{Reason, v1};
use tonic::Status;

use super::{get_schedule, schedule_spec};
use crate::{
    check::{self, invalid},
    status::from_engine,
    wire,
};

pub async fn handle(
    engine: &Engine,
    request: v1::NextScheduleTimesRequest,
) -> Result<v1::NextScheduleTimesResponse, Status> {
    let (timing, paused) = match (&*request.schedule_id, &request.spec) {
        ("", None) => return Err(invalid("schedule_id", "", "either it or spec must be set")),
        ("", Some(spec)) => (schedule_spec::timing(spec)?, false),
        (id, None) => {
            let found = get_schedule::read(engine, schedule_spec::key(&request.namespace_id, id)?).await?;
            (found.plan.timing, found.state.paused.is_some())
        }
        (id, Some(_)) => return Err(invalid("schedule_id", id, "spec is set too; ask for one of them")),
    };
    let refuse = |error| from_engine(ScheduleRejection::Timing(error).into());
    let timetable = timing.timetable().map_err(refuse)?;
    let count = check::count("count", request.count, 10, 1_000)?;
    let after = request.after.as_ref().map(|at| wire::read_timestamp("after", at)).transpose()?;
    let after = after.unwrap_or_else(|| engine.clock().calendar());
    let words = timetable.in_words();
    // A thousand times of a rare expression are a walk over centuries: not on a thread that serves everybody.
    let times = tokio::task::spawn_blocking(move || timetable.upcoming(after, count)).await;
    let failed = |error| Reason::Internal.status(format!("the times could not be computed: {error}"));
    let times = times.map_err(failed)?;
    Ok(v1::NextScheduleTimesResponse {
        words,
        time_zone: match timing {
            Timing::Cron { time_zone, .. } => time_zone.to_string(),
            Timing::Interval { .. } => "UTC".to_owned(),
        },
        times: times.into_iter().map(wire::timestamp).collect(),
        paused,
    })
}
