//! Two views on a run's events: the journal that replay needs, and the step attempts that people read.

use std::collections::HashMap;

use kagzi_model::{Event, EventKind, Failure, Name, Payload, Timestamp, WorkerId};

/// What is recorded of one step, with its result.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalEntry {
    pub path: Name,
    pub position: u32,
    pub attempts: u32,
    pub state: JournalState,
}

/// Where the step stands for replay.
#[derive(Debug, Clone, PartialEq)]
pub enum JournalState {
    Completed { result: Payload },
    Failed { failure: Failure },
    Retry { at: Timestamp, failure: Failure },
    Sleeping { until: Timestamp },
    Slept,
}

/// The journal in the order in which the steps were first recorded.
pub fn journal(events: &[Event]) -> Vec<JournalEntry> {
    let mut entries: Vec<JournalEntry> = Vec::new();
    let mut index: HashMap<Name, usize> = HashMap::new();
    let mut put = |entries: &mut Vec<JournalEntry>, entry: JournalEntry| match index.get(&entry.path) {
        Some(at) => entries[*at] = entry,
        None => {
            index.insert(entry.path.clone(), entries.len());
            entries.push(entry);
        }
    };
    let wake = |entries: &mut Vec<JournalEntry>, step: &Name| {
        if let Some(entry) = entries.iter_mut().find(|entry| entry.path == *step) {
            entry.state = JournalState::Slept;
        }
    };
    for event in events {
        match &event.kind {
            EventKind::StepCompleted { step, position, attempt, .. } => {
                let result = event.payload.clone().unwrap_or_else(|| Payload::new(&b""[..]));
                let (path, position, attempts) = (step.clone(), *position, *attempt);
                let state = JournalState::Completed { result };
                put(&mut entries, JournalEntry { path, position, attempts, state });
            }
            EventKind::StepFailed { step, position, attempt, failure, retry_at } => {
                let failure = failure.clone();
                let state = match retry_at {
                    Some(at) => JournalState::Retry { at: *at, failure },
                    None => JournalState::Failed { failure },
                };
                let (path, position, attempts) = (step.clone(), *position, *attempt);
                put(&mut entries, JournalEntry { path, position, attempts, state });
            }
            EventKind::SleepScheduled { step, position, until } => {
                let state = JournalState::Sleeping { until: *until };
                let (path, position) = (step.clone(), *position);
                put(&mut entries, JournalEntry { path, position, attempts: 0, state });
            }
            EventKind::SleepOver { step } => wake(&mut entries, step),
            EventKind::RunClaimed { slept, .. } => slept.iter().for_each(|step| wake(&mut entries, step)),
            EventKind::RunResumed => {
                for entry in &mut entries {
                    if let JournalState::Retry { at, .. } = &mut entry.state {
                        *at = (*at).min(event.at);
                    }
                }
            }
            EventKind::RunStarted
            | EventKind::StepStarted { .. }
            | EventKind::RunParked { .. }
            | EventKind::RunReleased { .. }
            | EventKind::LeaseLost { .. }
            | EventKind::RunPaused { .. }
            | EventKind::RunCompleted
            | EventKind::RunFailed { .. }
            | EventKind::RunCancelled { .. }
            | EventKind::RunTimedOut { .. } => {}
        }
    }
    entries
}

/// One execution of one step, for people.
#[derive(Debug, Clone, PartialEq)]
pub struct StepAttempt {
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
    Completed {
        output: Option<Payload>,
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

/// Every attempt of every step, oldest first.
pub fn attempts(events: &[Event]) -> Vec<StepAttempt> {
    let mut list: Vec<StepAttempt> = Vec::new();
    let mut worker = None;
    for event in events {
        match &event.kind {
            EventKind::RunClaimed { worker: claimed, slept, .. } => {
                worker = Some(*claimed);
                slept.iter().for_each(|step| end_sleep(&mut list, step, event.at));
            }
            EventKind::StepStarted { step, position, attempt } => list.push(StepAttempt {
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
                let output = event.payload.clone();
                let took = (*elapsed_ms > 0).then(|| Timestamp(event.at.0 - elapsed_ms * 1000));
                let ended = Ended { at: event.at, began: took, worker };
                finish(&mut list, (step, *position, *attempt), ended, AttemptState::Completed { output });
            }
            EventKind::StepFailed { step, position, attempt, failure, retry_at } => {
                let state = AttemptState::Failed { failure: failure.clone(), retry_at: *retry_at };
                let ended = Ended { at: event.at, began: None, worker };
                finish(&mut list, (step, *position, *attempt), ended, state);
            }
            EventKind::SleepScheduled { step, position, until } => list.push(StepAttempt {
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
            EventKind::RunStarted
            | EventKind::RunParked { .. }
            | EventKind::RunReleased { .. }
            | EventKind::LeaseLost { .. }
            | EventKind::RunPaused { .. }
            | EventKind::RunResumed
            | EventKind::RunCompleted
            | EventKind::RunFailed { .. }
            | EventKind::RunCancelled { .. }
            | EventKind::RunTimedOut { .. } => {}
        }
    }
    let mut seen = HashMap::new();
    for attempt in list.iter_mut().rev() {
        attempt.latest = seen.insert(attempt.path.clone(), ()).is_none();
    }
    list
}

struct Ended {
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

fn end_sleep(list: &mut [StepAttempt], path: &Name, at: Timestamp) {
    if let Some(sleep) = list.iter_mut().rev().find(|known| known.path == *path) {
        sleep.state = AttemptState::Slept;
        sleep.finished_at = Some(at);
    }
}
