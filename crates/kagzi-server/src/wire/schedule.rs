//! A schedule as clients see it.

use kagzi_model::schedule::{Schedule, Timing};
use kagzi_proto::v1;

use super::{
    payload::payload,
    run::{labels, retry_policy, set_retry_policy, timeouts, user},
    time::timestamp,
};

pub fn schedule(schedule: Schedule, with_input: bool) -> v1::Schedule {
    let Schedule { plan, state, .. } = schedule;
    // A stored timing was understood when it was made; should it no longer be, the schedule is paused and
    // says why.
    let words = plan.timing.timetable().map(|table| table.in_words()).unwrap_or_default();
    let mut spec = v1::ScheduleSpec {
        workflow_type: plan.workflow_type.to_string(),
        task_queue: plan.task_queue.to_string(),
        input: with_input.then(|| payload(schedule.input)),
        labels: labels(&plan.labels),
        user_id: user(&plan.labels),
        overlap: plan.overlap as i32,
        jitter_ms: plan.jitter_ms,
        max_catchup: Some(plan.max_catchup),
        timeouts: timeouts(&plan.options.timeouts),
        retry_policy: retry_policy(&plan.options.retry),
        run_retry_policy: plan.options.run_retry.as_ref().map(set_retry_policy),
        ..v1::ScheduleSpec::default()
    };
    if let Some(handler) = &plan.options.on_failure {
        spec.on_failure_workflow = handler.workflow_type.to_string();
        spec.on_failure_task_queue = handler.task_queue.as_deref().unwrap_or_default().to_owned();
    }
    match plan.timing {
        Timing::Cron { expression, time_zone } => {
            spec.cron = expression;
            spec.time_zone = time_zone.to_string();
        }
        Timing::Interval { every_ms, phase_ms } => {
            spec.interval_ms = every_ms;
            spec.phase_ms = phase_ms;
        }
    }
    let paused = state.paused.as_ref();
    v1::Schedule {
        schedule_id: schedule.id.to_string(),
        namespace_id: schedule.namespace.to_string(),
        spec: Some(spec),
        version: state.revision,
        paused: paused.is_some(),
        note: paused.map(|paused| paused.note.clone()).unwrap_or_default(),
        paused_at: paused.map(|paused| timestamp(paused.since)),
        next_at: state.next_at.map(timestamp),
        created_at: Some(timestamp(schedule.created_at)),
        updated_at: Some(timestamp(schedule.updated_at)),
        started_total: state.started_total,
        overlapped_total: state.overlapped_total,
        missed_total: state.missed_total,
        buffered: u32::try_from(state.buffer.len()).unwrap_or(u32::MAX),
        last_run_id: state.last.as_ref().map(|last| last.run.to_string()).unwrap_or_default(),
        last_nominal_at: state.last.as_ref().map(|last| timestamp(last.nominal_at)),
        last_started_at: state.last.as_ref().map(|last| timestamp(last.started_at)),
        words,
        backfills: u32::try_from(state.backfills.len()).unwrap_or(u32::MAX),
    }
}
