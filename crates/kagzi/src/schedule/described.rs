//! A schedule as clients see it.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use kagzi_proto::v1;

use crate::absent::{always, at, text};
use crate::client::start::Timeouts;
use crate::payload::Payload;
use crate::retry_policy::{RetryPolicy, from_millis};
use crate::schedule::builder::Overlap;

/// A schedule as it was when it was read.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Schedule {
    /// Your name for it.
    pub schedule_id: String,
    /// Its namespace.
    pub namespace: String,
    /// When it fires.
    pub timing: Timing,
    /// The same in English.
    pub words: String,
    /// The type of the runs that it starts.
    pub workflow_type: String,
    /// Their queue.
    pub task_queue: String,
    /// Their input. Lists leave it out.
    pub input: Option<Payload>,
    /// What becomes of a time that comes while an earlier run still goes.
    pub overlap: Overlap,
    /// Each start is up to this much later.
    pub jitter: Duration,
    /// How many missed times are made up for.
    pub max_catchup: Option<u32>,
    /// Limits on the time of its runs.
    pub timeouts: Timeouts,
    /// How the steps of its runs are retried.
    pub retry_policy: RetryPolicy,
    /// How its runs are retried; none = they are not.
    pub run_retry_policy: Option<RetryPolicy>,
    /// The workflow type that is started when one of its runs fails.
    pub on_failure: Option<String>,
    /// The queue of that handler.
    pub on_failure_queue: Option<String>,
    /// For whom its runs are.
    pub user_id: Option<String>,
    /// Labels of its runs.
    pub labels: BTreeMap<String, String>,
    /// Rises with every update.
    pub version: u64,
    /// It fires at none of its times.
    pub paused: bool,
    /// Why it is paused.
    pub note: String,
    /// Since when it is paused.
    pub paused_at: Option<SystemTime>,
    /// When there is something to do next.
    pub next_at: Option<SystemTime>,
    /// When it was made.
    pub created_at: SystemTime,
    /// When it was changed last.
    pub updated_at: Option<SystemTime>,
    /// Runs that it started.
    pub started_total: u64,
    /// Times that were left out because an earlier run was still going.
    pub overlapped_total: u64,
    /// Times that were left out because too many were missed, or because a resume said so.
    pub missed_total: u64,
    /// Times that wait for the run before them.
    pub buffered: u32,
    /// Backfills that were asked for and are not done.
    pub backfills: u32,
    /// The run that it started last.
    pub last_run_id: Option<String>,
    /// The nominal time of that run.
    pub last_nominal_at: Option<SystemTime>,
    /// When that run was started.
    pub last_started_at: Option<SystemTime>,
}

/// When a schedule fires.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Timing {
    /// By a cron expression.
    Cron {
        /// As given.
        expression: String,
        /// The zone whose wall clock it reads; none = UTC.
        time_zone: Option<String>,
    },
    /// Every so often, counted from 1970 in UTC.
    Every {
        /// How often.
        interval: Duration,
        /// Moves it.
        phase: Duration,
    },
}

impl Schedule {
    pub(crate) fn from_proto(schedule: v1::Schedule) -> Schedule {
        let spec = schedule.spec.unwrap_or_default();
        Schedule {
            overlap: Overlap::from_proto(spec.overlap()),
            timing: match text(spec.cron) {
                Some(expression) => Timing::Cron { expression, time_zone: text(spec.time_zone) },
                None => Timing::Every {
                    interval: from_millis(spec.interval_ms),
                    phase: from_millis(spec.phase_ms),
                },
            },
            schedule_id: schedule.schedule_id,
            namespace: schedule.namespace_id,
            words: schedule.words,
            workflow_type: spec.workflow_type,
            task_queue: spec.task_queue,
            input: spec.input.map(Payload::from_proto),
            jitter: from_millis(spec.jitter_ms),
            max_catchup: spec.max_catchup,
            timeouts: spec.timeouts.map(Timeouts::from_proto).unwrap_or_default(),
            retry_policy: spec.retry_policy.map(RetryPolicy::from_proto).unwrap_or_default(),
            run_retry_policy: spec.run_retry_policy.map(RetryPolicy::from_proto),
            on_failure: text(spec.on_failure_workflow),
            on_failure_queue: text(spec.on_failure_task_queue),
            user_id: text(spec.user_id),
            labels: spec.labels.into_iter().collect(),
            version: schedule.version,
            paused: schedule.paused,
            note: schedule.note,
            paused_at: at(schedule.paused_at),
            next_at: at(schedule.next_at),
            created_at: always(schedule.created_at),
            updated_at: at(schedule.updated_at),
            started_total: schedule.started_total,
            overlapped_total: schedule.overlapped_total,
            missed_total: schedule.missed_total,
            buffered: schedule.buffered,
            backfills: schedule.backfills,
            last_run_id: text(schedule.last_run_id),
            last_nominal_at: at(schedule.last_nominal_at),
            last_started_at: at(schedule.last_started_at),
        }
    }
}

/// An empty schedule, for tests of programs that show schedules.
impl Default for Schedule {
    fn default() -> Schedule {
        Schedule::from_proto(v1::Schedule::default())
    }
}
