//! The event catalogue: every line that a run's history can have. Documented for users in `docs/events.md`.

use serde::{Deserialize, Serialize};

use crate::{Failure, Finality, Millis, Name, Payload, RetryPolicy, RunId, Timestamp, WorkerId};

/// One immutable line of a run's history.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// 1, 2, 3, … without a gap.
    pub seq: u64,
    pub at: Timestamp,
    pub kind: EventKind,
    /// Input, step result or output; never inside `kind`, so that it is stored as the bytes it came as.
    pub payload: Option<Payload>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum EventKind {
    /// Payload: the input.
    RunStarted,
    /// `slept` names the sleeps that were over at that moment, so that replay sees the same order.
    RunClaimed {
        worker: WorkerId,
        epoch: u64,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        slept: Vec<Name>,
    },
    /// Written only for steps that other languages begin by RPC, or that run long.
    StepStarted {
        step: Name,
        position: u32,
        attempt: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_at: Option<Timestamp>,
        /// The step's own policy, for the case that the server must time it out.
        #[serde(default, skip_serializing_if = "is_default")]
        policy: RetryPolicy,
    },
    /// A long step says how far it is. Payload: what the next attempt may read.
    StepProgressed {
        step: Name,
        position: u32,
        attempt: u32,
    },
    /// Payload: the result.
    StepCompleted {
        step: Name,
        position: u32,
        attempt: u32,
        #[serde(default, skip_serializing_if = "is_zero")]
        elapsed_ms: Millis,
    },
    /// `retry_at` is absent when the failure is final.
    StepFailed {
        step: Name,
        position: u32,
        attempt: u32,
        failure: Failure,
        retry_at: Option<Timestamp>,
        /// Why there is no retry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finality: Option<Finality>,
        #[serde(default, skip_serializing_if = "is_zero")]
        elapsed_ms: Millis,
    },
    SleepScheduled {
        step: Name,
        position: u32,
        until: Timestamp,
    },
    SleepOver {
        step: Name,
    },
    /// The run waits for its earliest retry or sleep; the lease ended. `closes` names the unfinished steps that the
    /// code has dropped, `opens` those that were closed before and are waited for after all.
    RunParked {
        due_at: Timestamp,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        closes: Vec<Name>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        opens: Vec<Name>,
    },
    RunReleased {
        why: String,
    },
    /// The worker was lost: its lease ran out or it was declared stale.
    LeaseLost {
        worker: WorkerId,
        epoch: u64,
        retry_at: Option<Timestamp>,
    },
    RunPaused {
        by: Name,
        why: String,
    },
    /// `request` is the caller's own name for the request, so that a repeat is recognised.
    RunResumed {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<Name>,
    },
    /// Payload: the output.
    RunCompleted,
    /// `step` is the step whose error the function returned, if it was one.
    RunFailed {
        failure: Failure,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<Name>,
    },
    RunCancelled {
        reason: String,
    },
    RunTimedOut {
        failure: Failure,
    },
    /// The function failed and is executed again; the failed steps in `forgives` begin anew.
    RunRetried {
        attempt: u32,
        failure: Failure,
        at: Timestamp,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        forgives: Vec<Name>,
    },
    /// An operator let an ended run go on; the failed steps in `forgives` begin anew.
    RunReopened {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        forgives: Vec<Name>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<Name>,
    },
    /// A failure handler was started for this run.
    HandlerStarted {
        handler: RunId,
        workflow_type: Name,
        task_queue: Name,
    },
    /// The failure handler ended.
    HandlerEnded {
        handler: RunId,
        outcome: String,
    },
    /// The workflow set a label of its run. The call has a step's identity, so that replay does not repeat it.
    LabelSet {
        step: Name,
        position: u32,
        name: Name,
        value: Name,
    },
    /// The code dropped a step while an attempt ran: nobody knows how far it came.
    StepClosed {
        step: Name,
        position: u32,
        attempt: u32,
    },
    /// A line that this server does not understand: a newer one wrote it, or it is damaged. It is kept and shown as it
    /// is stored, and its run is left alone here.
    #[serde(skip)]
    Unknown {
        name: Name,
        detail: Box<str>,
    },
}

fn is_default(policy: &RetryPolicy) -> bool {
    *policy == RetryPolicy::default()
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// The one field that every stored line has.
#[derive(Deserialize)]
struct Tag {
    event: Name,
}

impl EventKind {
    /// Reads a stored line. One that is not understood is kept; only what is no line at all is an error.
    pub fn read(detail: &str) -> Result<EventKind, serde_json::Error> {
        serde_json::from_str(detail).or_else(|_| {
            let Tag { event } = serde_json::from_str(detail)?;
            Ok(EventKind::Unknown { name: event, detail: detail.into() })
        })
    }

    /// The line as it is stored.
    pub fn to_json(&self) -> String {
        match self {
            EventKind::Unknown { detail, .. } => detail.to_string(),
            known => serde_json::to_string(known).expect("our own types are always valid JSON"),
        }
    }

    /// The number that databases store; never reused.
    pub fn number(&self) -> i64 {
        match self {
            EventKind::RunStarted => 1,
            EventKind::RunClaimed { .. } => 2,
            EventKind::StepStarted { .. } => 3,
            EventKind::StepCompleted { .. } => EventKind::STEP_COMPLETED,
            EventKind::StepFailed { .. } => 5,
            EventKind::SleepScheduled { .. } => 6,
            EventKind::SleepOver { .. } => 7,
            EventKind::RunParked { .. } => 8,
            EventKind::RunReleased { .. } => 9,
            EventKind::LeaseLost { .. } => 10,
            EventKind::RunPaused { .. } => 11,
            EventKind::RunResumed { .. } => 12,
            EventKind::RunCompleted => EventKind::RUN_COMPLETED,
            EventKind::RunFailed { .. } => 14,
            EventKind::RunCancelled { .. } => 15,
            EventKind::RunTimedOut { .. } => 16,
            EventKind::StepProgressed { .. } => EventKind::STEP_PROGRESSED,
            EventKind::RunRetried { .. } => 18,
            EventKind::RunReopened { .. } => 19,
            EventKind::HandlerStarted { .. } => 20,
            EventKind::HandlerEnded { .. } => 21,
            EventKind::LabelSet { .. } => 22,
            EventKind::StepClosed { .. } => 23,
            EventKind::Unknown { .. } => 0,
        }
    }

    /// Every kind: the name that users read and the number that databases store.
    pub const KINDS: [(&str, i64); 23] = [
        ("run_started", 1),
        ("run_claimed", 2),
        ("step_started", 3),
        ("step_completed", EventKind::STEP_COMPLETED),
        ("step_failed", 5),
        ("sleep_scheduled", 6),
        ("sleep_over", 7),
        ("run_parked", 8),
        ("run_released", 9),
        ("lease_lost", 10),
        ("run_paused", 11),
        ("run_resumed", 12),
        ("run_completed", EventKind::RUN_COMPLETED),
        ("run_failed", 14),
        ("run_cancelled", 15),
        ("run_timed_out", 16),
        ("step_progressed", EventKind::STEP_PROGRESSED),
        ("run_retried", 18),
        ("run_reopened", 19),
        ("handler_started", 20),
        ("handler_ended", 21),
        ("label_set", 22),
        ("step_closed", 23),
    ];
    /// The number of `StepCompleted`: the unique index that keeps results single is built on it.
    pub const STEP_COMPLETED: i64 = 4;
    /// The number of `StepProgressed`: where the next attempt finds how far the last one came.
    pub const STEP_PROGRESSED: i64 = 17;
    /// The number of `RunCompleted`: where a run's output is found.
    pub const RUN_COMPLETED: i64 = 13;

    /// The name that users read.
    pub fn name(&self) -> &str {
        match self {
            EventKind::RunStarted => "run_started",
            EventKind::RunClaimed { .. } => "run_claimed",
            EventKind::StepStarted { .. } => "step_started",
            EventKind::StepCompleted { .. } => "step_completed",
            EventKind::StepFailed { .. } => "step_failed",
            EventKind::SleepScheduled { .. } => "sleep_scheduled",
            EventKind::SleepOver { .. } => "sleep_over",
            EventKind::RunParked { .. } => "run_parked",
            EventKind::RunReleased { .. } => "run_released",
            EventKind::LeaseLost { .. } => "lease_lost",
            EventKind::RunPaused { .. } => "run_paused",
            EventKind::RunResumed { .. } => "run_resumed",
            EventKind::RunCompleted => "run_completed",
            EventKind::RunFailed { .. } => "run_failed",
            EventKind::RunCancelled { .. } => "run_cancelled",
            EventKind::RunTimedOut { .. } => "run_timed_out",
            EventKind::StepProgressed { .. } => "step_progressed",
            EventKind::RunRetried { .. } => "run_retried",
            EventKind::RunReopened { .. } => "run_reopened",
            EventKind::HandlerStarted { .. } => "handler_started",
            EventKind::HandlerEnded { .. } => "handler_ended",
            EventKind::LabelSet { .. } => "label_set",
            EventKind::StepClosed { .. } => "step_closed",
            EventKind::Unknown { name, .. } => name,
        }
    }

    /// The run came further than it was, or a person said that it should: what happened in a row before it is over.
    pub fn is_progress(&self) -> bool {
        match self {
            EventKind::RunClaimed { slept, .. } => !slept.is_empty(),
            EventKind::StepProgressed { .. }
            | EventKind::StepCompleted { .. }
            | EventKind::StepFailed { .. }
            | EventKind::SleepScheduled { .. }
            | EventKind::SleepOver { .. }
            | EventKind::LabelSet { .. }
            | EventKind::RunResumed { .. }
            | EventKind::RunRetried { .. }
            | EventKind::RunReopened { .. }
            | EventKind::RunCompleted
            | EventKind::RunFailed { .. }
            | EventKind::RunCancelled { .. }
            | EventKind::RunTimedOut { .. } => true,
            EventKind::RunStarted
            | EventKind::StepStarted { .. }
            | EventKind::RunParked { .. }
            | EventKind::RunReleased { .. }
            | EventKind::LeaseLost { .. }
            | EventKind::RunPaused { .. }
            | EventKind::StepClosed { .. }
            | EventKind::Unknown { .. }
            | EventKind::HandlerStarted { .. }
            | EventKind::HandlerEnded { .. } => false,
        }
    }

    /// The step it is about, and the attempt, if any.
    pub fn step(&self) -> Option<(&Name, u32)> {
        match self {
            EventKind::StepStarted { step, attempt, .. }
            | EventKind::StepProgressed { step, attempt, .. }
            | EventKind::StepCompleted { step, attempt, .. }
            | EventKind::StepClosed { step, attempt, .. }
            | EventKind::StepFailed { step, attempt, .. } => Some((step, *attempt)),
            EventKind::SleepScheduled { step, .. }
            | EventKind::SleepOver { step }
            | EventKind::LabelSet { step, .. } => Some((step, 0)),
            EventKind::RunStarted
            | EventKind::RunClaimed { .. }
            | EventKind::RunParked { .. }
            | EventKind::RunReleased { .. }
            | EventKind::LeaseLost { .. }
            | EventKind::RunPaused { .. }
            | EventKind::RunResumed { .. }
            | EventKind::RunCompleted
            | EventKind::RunFailed { .. }
            | EventKind::RunCancelled { .. }
            | EventKind::RunTimedOut { .. }
            | EventKind::RunRetried { .. }
            | EventKind::RunReopened { .. }
            | EventKind::HandlerStarted { .. }
            | EventKind::HandlerEnded { .. }
            | EventKind::Unknown { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn the_list_of_kinds_has_every_kind_with_its_name_and_number() {
        let (step, at, worker, handler) =
            (Name::from("a"), Timestamp(1), WorkerId(Uuid::nil()), RunId(Uuid::nil()));
        let (name, value, by) = (step.clone(), step.clone(), step.clone());
        let (position, attempt, epoch, elapsed_ms) = (0, 1, 1, 0);
        let failure = Failure::new("A", "b");
        let (why, reason, outcome) = (String::new(), String::new(), String::new());
        let (workflow_type, task_queue) = (step.clone(), step.clone());
        let again = failure.clone();
        let kinds = [
            EventKind::RunStarted,
            EventKind::RunClaimed { worker, epoch, slept: Vec::new() },
            EventKind::StepStarted {
                step: step.clone(),
                position,
                attempt,
                timeout_at: None,
                policy: RetryPolicy::default(),
            },
            EventKind::StepCompleted { step: step.clone(), position, attempt, elapsed_ms },
            EventKind::StepFailed {
                step: step.clone(),
                position,
                attempt,
                failure: failure.clone(),
                retry_at: None,
                finality: None,
                elapsed_ms,
            },
            EventKind::SleepScheduled { step: step.clone(), position, until: at },
            EventKind::SleepOver { step: step.clone() },
            EventKind::RunParked { due_at: at, closes: Vec::new(), opens: Vec::new() },
            EventKind::RunReleased { why: why.clone() },
            EventKind::LeaseLost { worker, epoch, retry_at: None },
            EventKind::RunPaused { by, why },
            EventKind::RunResumed { request: None },
            EventKind::RunCompleted,
            EventKind::RunFailed { failure: failure.clone(), step: None },
            EventKind::RunCancelled { reason },
            EventKind::RunTimedOut { failure },
            EventKind::StepProgressed { step: step.clone(), position, attempt },
            EventKind::RunRetried { attempt, failure: again, at, forgives: Vec::new() },
            EventKind::RunReopened { forgives: Vec::new(), request: None },
            EventKind::HandlerStarted { handler, workflow_type, task_queue },
            EventKind::HandlerEnded { handler, outcome },
            EventKind::LabelSet { step: step.clone(), position, name, value },
            EventKind::StepClosed { step, position, attempt },
        ];

        let listed = kinds.map(|kind| (kind.name().to_owned(), kind.number()));
        assert_eq!(listed, EventKind::KINDS.map(|(name, number)| (name.to_owned(), number)));
    }

    #[test]
    fn a_line_that_is_not_understood_is_kept_as_it_is_and_what_is_no_line_is_an_error() {
        let newer = r#"{"event":"signal_received","channel":"go"}"#;
        let damaged = r#"{"event":"step_completed"}"#;

        let kept = [newer, damaged].map(|detail| EventKind::read(detail).unwrap());

        assert_eq!(kept.each_ref().map(|kind| kind.name().to_owned()), ["signal_received", "step_completed"]);
        assert_eq!(kept.map(|kind| kind.to_json()), [newer, damaged]);
        assert_eq!(EventKind::read(r#"{"event":"run_started"}"#).unwrap(), EventKind::RunStarted);
        assert!(EventKind::read("\u{1}\u{2}").is_err() && EventKind::read("{}").is_err());
    }
}
