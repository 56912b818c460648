//! Schedules: runs that start by the clock.
//!
//! [`Schedule`] is the row. [`tick`] is told the time and which earlier runs still go, and answers what to
//! start, to end, to leave out and to keep waiting; [`change`] answers what a person asks for. Both are pure:
//! a store loads the row, writes the new one and the started runs in one commit, and lets nobody else write
//! in between.

mod calendar;
mod change;
mod cron;
mod dialect;
pub(crate) mod key;
mod overlap;
mod tick;
mod timing;

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use change::{
    NewSchedule, ScheduleChange, ScheduleCommand, ScheduleKey, ScheduleRejection, ScheduleRequest, change,
};
pub use cron::CronError;
pub use key::business_id as scheduled_business_id;
pub use overlap::{Overlap, Verdict};
pub use tick::{Cause, Fire, Tick, tick};
pub use timing::{Timetable, Timing, TimingError};

use crate::{Labels, Millis, Name, Payload, RunId, RunOptions, Timestamp};

/// One schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    pub namespace: Name,
    /// The user's name for it, unique in the namespace.
    pub id: Name,
    /// Ours: another one when a schedule is deleted and made again.
    pub uid: Uuid,
    /// Rises with every write of the row, so that a writer with an old copy is noticed.
    pub version: u64,
    pub plan: Plan,
    /// The input of every run.
    pub input: Payload,
    pub state: ScheduleState,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What is wanted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub timing: Timing,
    pub workflow_type: Name,
    pub task_queue: Name,
    #[serde(default)]
    pub options: RunOptions,
    /// Of every run that it starts.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    #[serde(default)]
    pub overlap: Overlap,
    /// Spreads the starts: each is up to this much later than its nominal time.
    #[serde(default)]
    pub jitter_ms: Millis,
    /// How many missed times are made up for, the newest.
    pub max_catchup: u32,
}

/// How far it has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduleState {
    /// How often a person has written the plan. Unlike the row's version it does not rise when the schedule
    /// fires.
    pub revision: u64,
    /// Every time up to here has been decided.
    pub decided_until: Timestamp,
    /// When there is something to do; none = nothing, ever.
    pub next_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Paused>,
    /// Started here and not known to have ended. With `Allow` only the newest is kept.
    #[serde(default)]
    pub running: Vec<RunId>,
    /// Times that wait for the run before them.
    #[serde(default)]
    pub buffer: VecDeque<Timestamp>,
    #[serde(default)]
    pub backfills: VecDeque<Backfill>,
    #[serde(default)]
    pub started_total: u64,
    /// Left out because an earlier run was still going.
    #[serde(default)]
    pub overlapped_total: u64,
    /// Left out because more was missed than `max_catchup`, or because a resume said so.
    #[serde(default)]
    pub missed_total: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastRun>,
}

/// Who paused it and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    pub note: String,
    pub since: Timestamp,
}

/// The newest run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastRun {
    pub run: RunId,
    pub nominal_at: Timestamp,
    pub started_at: Timestamp,
}

/// A range of past times that somebody asked for: `(after, to]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backfill {
    pub after: Timestamp,
    pub to: Timestamp,
    /// All at once, or one after the other.
    pub at_once: bool,
}

/// What a run remembers of the schedule that started it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledBy {
    pub schedule: Name,
    /// The nominal time: what the timetable says, whenever the run really started.
    pub at: Timestamp,
}

impl Schedule {
    /// When the run for a nominal time starts.
    pub fn start_of(&self, at: Timestamp) -> Timestamp {
        at.plus_ms(key::jitter_ms(&self.id, at, self.plan.jitter_ms))
    }

    /// The end of a run may let something start.
    pub fn waits_for_an_end(&self) -> bool {
        !self.state.buffer.is_empty() || !self.state.backfills.is_empty()
    }

    /// Its name, with its namespace.
    pub fn key(&self) -> ScheduleKey {
        ScheduleKey { namespace: self.namespace.clone(), id: self.id.clone() }
    }
}
