//! The step attempts of a run, as people read them.

use std::collections::HashMap;

use kagzi_model::{Event, EventKind, Failure, Millis, Name, Timestamp, WorkerId};

/// One execution of one step, for people.
#[derive(Debug, Clone, PartialEq)]
pub struct StepAttempt {
    /// The event that told of it first: its place in the list, for ever. None for one that only a worker tells of.
    pub seq: Option<u64>,
    pub path: Name,
    pub position: u32,
    pub attempt: u32,
    pub worker: Option<WorkerId>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub state: AttemptState,
    /// No later attempt of the step exists.
    pub latest: bool,
}

/// How the attempt went.
#[derive(Debug, Clone, PartialEq)]
pub enum AttemptState {
    Running,
    /// Its output is the payload of the event with this sequence number.
    Completed {
        recorded_seq: u64,
    },
    /// Failed, and the next attempt is (or was) due at `retry_at`; none when final.
    Failed {
        failure: Failure,
        retry_at: Option<Timestamp>,
    },
    Sleeping {
        until: Timestamp,
    },
    Slept,
}

/// Every attempt of every step, oldest first. Payloads are not looked at: an outline is enough.
pub fn attempts(events: &[Event]) -> Vec<StepAttempt> {
    let mut list: Vec<StepAttempt> = Vec::new();
    let mut worker = None;
    for event in events {
        match &event.kind {
            EventKind::RunClaimed { worker: claimed, slept, .. } => {
                worker = Some(*claimed);
                slept.iter().for_each(|step| end_sleep(&mut list, step, event.at));
            }
            EventKind::StepStarted { step, position, attempt, .. } => list.push(StepAttempt {
                seq: Some(event.seq),
                path: step.clone(),
                position: *position,
                attempt: *attempt,
                worker,
                started_at: Some(event.at),
                finished_at: None,
                state: AttemptState::Running,
                latest: true,
            }),
            EventKind::StepCompleted { step, position, attempt, elapsed_ms } => {
                let ended =
                    Ended { seq: event.seq, at: event.at, began: began(event.at, *elapsed_ms), worker };
                finish(
                    &mut list,
                    (step, *position, *attempt),
                    ended,
                    AttemptState::Completed { recorded_seq: event.seq },
                );
            }
            EventKind::StepFailed { step, position, attempt, failure, retry_at, elapsed_ms, .. } => {
                let state = AttemptState::Failed { failure: failure.clone(), retry_at: *retry_at };
                let ended =
                    Ended { seq: event.seq, at: event.at, began: began(event.at, *elapsed_ms), worker };
                finish(&mut list, (step, *position, *attempt), ended, state);
            }
            EventKind::SleepScheduled { step, position, until } => list.push(StepAttempt {
                seq: Some(event.seq),
                path: step.clone(),
                position: *position,
                attempt: 1,
                worker,
                started_at: Some(event.at),
                finished_at: None,
                state: AttemptState::Sleeping { until: *until },
                latest: true,
            }),
            EventKind::SleepOver { step } => end_sleep(&mut list, step, event.at),
            EventKind::RunFailed { failure, .. } | EventKind::RunTimedOut { failure } => {
                cut_off(&mut list, event.at, failure, None);
            }
            EventKind::RunCancelled { reason } => {
                cut_off(&mut list, event.at, &Failure::new("CANCELLED", reason), None);
            }
            EventKind::LeaseLost { worker, retry_at, .. } => {
                let lost = Failure::new("WORKER_LOST", &format!("worker {worker} was lost"));
                cut_off(&mut list, event.at, &lost, *retry_at);
            }
            EventKind::RunReleased { why } => {
                cut_off(&mut list, event.at, &Failure::new("RELEASED", why), Some(event.at));
            }
            EventKind::RunParked { due_at, .. } => {
                let taken = Failure::new("LEASE_LOST", "the run was taken from its worker");
                cut_off(&mut list, event.at, &taken, Some(*due_at));
            }
            EventKind::StepClosed { step, attempt, .. } => {
                let dropped = Failure::new("ABANDONED", "the code dropped the step; its outcome is unknown");
                let running = list.iter_mut().rev().find(|known| {
                    known.path == *step && known.attempt == *attempt && known.state == AttemptState::Running
                });
                if let Some(known) = running {
                    known.state = AttemptState::Failed { failure: dropped, retry_at: None };
                    known.finished_at = Some(event.at);
                }
            }
            EventKind::RunStarted
            | EventKind::RunPaused { .. }
            | EventKind::RunResumed { .. }
            | EventKind::RunCompleted
            | EventKind::StepProgressed { .. }
            | EventKind::RunRetried { .. }
            | EventKind::RunReopened { .. }
            | EventKind::HandlerStarted { .. }
            | EventKind::HandlerEnded { .. }
            | EventKind::Unknown { .. }
            | EventKind::LabelSet { .. } => {}
        }
    }
    let mut seen = HashMap::new();
    for attempt in list.iter_mut().rev() {
        attempt.latest = seen.insert(attempt.path.clone(), ()).is_none();
    }
    list
}

/// When an attempt began that took so long; none when its worker did not say.
fn began(ended_at: Timestamp, elapsed_ms: Millis) -> Option<Timestamp> {
    (elapsed_ms > 0).then(|| ended_at.plus_ms(-elapsed_ms))
}

struct Ended {
    seq: u64,
    at: Timestamp,
    began: Option<Timestamp>,
    worker: Option<WorkerId>,
}

/// Ends the attempt that was told to have begun, or adds one that was not.
fn finish(
    list: &mut Vec<StepAttempt>,
    (path, position, attempt): (&Name, u32, u32),
    ended: Ended,
    state: AttemptState,
) {
    let begun = list.iter_mut().rev().find(|known| {
        known.path == *path && known.attempt == attempt && known.state == AttemptState::Running
    });
    match begun {
        Some(known) => {
            known.finished_at = Some(ended.at);
            known.state = state;
        }
        None => list.push(StepAttempt {
            seq: Some(ended.seq),
            path: path.clone(),
            position,
            attempt,
            worker: ended.worker,
            started_at: ended.began.or(Some(ended.at)),
            finished_at: Some(ended.at),
            state,
            latest: true,
        }),
    }
}

/// Ends what was being executed when the run left its worker: nobody will hear of it any more.
fn cut_off(list: &mut [StepAttempt], at: Timestamp, why: &Failure, retry_at: Option<Timestamp>) {
    for attempt in list.iter_mut().filter(|attempt| attempt.state == AttemptState::Running) {
        attempt.state = AttemptState::Failed { failure: why.clone(), retry_at };
        attempt.finished_at = Some(at);
    }
}

fn end_sleep(list: &mut [StepAttempt], path: &Name, at: Timestamp) {
    if let Some(sleep) = list.iter_mut().rev().find(|known| known.path == *path) {
        sleep.state = AttemptState::Slept;
        sleep.finished_at = Some(at);
    }
}
