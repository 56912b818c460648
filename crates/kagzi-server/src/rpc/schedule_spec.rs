//! Reading what a schedule is to be. Every refusal names the field, the value and the rule.

use kagzi_engine::Engine;
use kagzi_model::{
    Name, RunOptions, USER_LABEL, check_name,
    limits::{CATCHUP_MAX, CATCHUP_STANDARD, CRON_BYTES_MAX, JITTER_MS_MAX, SCHEDULE_ID_BYTES_MAX},
    schedule::{NewSchedule, Overlap, Plan, ScheduleKey, Timing},
};
use kagzi_proto::v1;
use tonic::Status;
use uuid::Uuid;

use super::start_workflow::on_failure;
use crate::{
    check::{self, invalid},
    services::{heartbeat_interval_ms, limits},
};

/// Names a schedule.
pub fn key(namespace: &str, id: &str) -> Result<ScheduleKey, Status> {
    let namespace = check::namespace(namespace)?;
    check_name(id).map_err(|rule| invalid("schedule_id", id, format_args!("it {rule}")))?;
    if id.len() > SCHEDULE_ID_BYTES_MAX {
        let rule = format!("it is {} bytes long, at most {SCHEDULE_ID_BYTES_MAX} are allowed", id.len());
        return Err(invalid("schedule_id", id, rule));
    }
    Ok(ScheduleKey { namespace, id: Name::from(id) })
}

/// Checks every field of a spec.
pub fn read(engine: &Engine, spec: Option<v1::ScheduleSpec>) -> Result<NewSchedule, Status> {
    let Some(spec) = spec else { return Err(invalid("spec", "", "it must be set")) };
    let timing = timing(&spec)?;
    let overlap = match spec.overlap {
        0 => Overlap::default(),
        number => Overlap::from_number(i64::from(number))
            .ok_or_else(|| invalid("spec.overlap", number, "it must be an OverlapPolicy, 0 to 6"))?,
    };
    if !(0..=JITTER_MS_MAX).contains(&spec.jitter_ms) {
        return Err(invalid("spec.jitter_ms", spec.jitter_ms, "it must be between 0 and an hour"));
    }
    let max_catchup = spec.max_catchup.unwrap_or(CATCHUP_STANDARD);
    if !(1..=CATCHUP_MAX).contains(&max_catchup) {
        let rule = format!("it must be between 1 and {CATCHUP_MAX}");
        return Err(invalid("spec.max_catchup", max_catchup, rule));
    }
    let mut labels = check::run_labels(&spec.labels)?;
    if let Some(user) = check::optional_name("spec.user_id", &spec.user_id)? {
        labels = labels.with(Name::from(USER_LABEL), user);
    }
    let run_retry = spec.run_retry_policy.map(|policy| check::retry_policy(Some(policy))).transpose()?;
    let plan = Plan {
        timing,
        workflow_type: check::name("spec.workflow_type", &spec.workflow_type)?,
        task_queue: check::name("spec.task_queue", &spec.task_queue)?,
        options: RunOptions {
            // The namespace and the server fill in what is open, when a run starts.
            retry: check::retry_policy(spec.retry_policy)?,
            timeouts: check::timeouts(spec.timeouts, heartbeat_interval_ms(engine))?,
            run_retry,
            on_failure: on_failure(&spec.on_failure_workflow, &spec.on_failure_task_queue)?,
            ..RunOptions::default()
        },
        labels,
        overlap,
        jitter_ms: spec.jitter_ms,
        max_catchup,
    };
    let input = check::payload(limits(engine), "spec.input", spec.input)?;
    Ok(NewSchedule { uid: Uuid::now_v7(), plan, input, paused: None })
}

/// When: by cron or by interval, and not both. Whether it makes sense is decided by the model.
pub fn timing(spec: &v1::ScheduleSpec) -> Result<Timing, Status> {
    match (spec.cron.is_empty(), spec.interval_ms) {
        (true, 0) => Err(invalid("spec.cron", "", "either cron or interval_ms must be set")),
        (false, 0) => Ok(Timing::Cron {
            expression: cron(&spec.cron)?,
            time_zone: check::optional_name("spec.time_zone", &spec.time_zone)?
                .unwrap_or_else(|| Name::from("UTC")),
        }),
        (true, every_ms) if spec.time_zone.is_empty() => {
            Ok(Timing::Interval { every_ms, phase_ms: spec.phase_ms })
        }
        (true, _) => Err(invalid("spec.time_zone", &spec.time_zone, "an interval has none")),
        (false, every_ms) => {
            Err(invalid("spec.interval_ms", every_ms, "cron is set too; a schedule has one timing"))
        }
    }
}

/// What is longer than any expression, or cannot be shown, is not even parsed: its mistake could not be told.
fn cron(text: &str) -> Result<String, Status> {
    if text.len() > CRON_BYTES_MAX {
        let rule = format!("it is {} bytes long, at most {CRON_BYTES_MAX} are allowed", text.len());
        return Err(invalid("spec.cron", text, rule));
    }
    // Tabs separate fields as well as spaces do.
    match text.char_indices().find(|(_, c)| c.is_control() && *c != '\t') {
        Some((at, _)) => {
            Err(invalid("spec.cron", text, format_args!("it has a control character at byte {at}")))
        }
        None => Ok(text.to_owned()),
    }
}
