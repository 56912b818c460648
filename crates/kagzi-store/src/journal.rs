//! The journal of a run, as replay needs it.

use std::collections::HashMap;

use kagzi_model::{Event, EventKind, Failure, Finality, Name, Payload, Timestamp};

/// What is recorded of one step, with its result.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalEntry {
    pub path: Name,
    pub position: u32,
    pub attempts: u32,
    pub state: JournalState,
    /// What an unfinished attempt said about how far it was.
    pub progress: Option<Payload>,
}

/// Where the step stands for replay.
#[derive(Debug, Clone, PartialEq)]
pub enum JournalState {
    /// It began and told of progress, but no attempt has ended.
    Begun,
    Completed {
        result: Payload,
    },
    Failed {
        failure: Failure,
        /// Code may ask for it, so replay must answer what the first execution heard.
        finality: Finality,
    },
    Retry {
        at: Timestamp,
        failure: Failure,
    },
    Sleeping {
        until: Timestamp,
    },
    Slept,
}

/// The journal in the order in which the steps were first recorded.
pub fn journal(events: &[Event]) -> Vec<JournalEntry> {
    let mut journal = Journal::default();
    for event in events {
        match &event.kind {
            EventKind::StepProgressed { step, position, .. } => {
                let entry = journal.entry(step, *position, JournalState::Begun);
                entry.progress = event.payload.clone();
            }
            EventKind::StepCompleted { step, position, attempt, .. } => {
                let result = event.payload.clone().unwrap_or_else(|| Payload::new(&b""[..]));
                journal.set(step, *position, *attempt, JournalState::Completed { result });
            }
            EventKind::StepFailed { step, position, attempt, failure, retry_at, finality, .. } => {
                let failure = failure.clone();
                let state = match retry_at {
                    Some(at) => JournalState::Retry { at: *at, failure },
                    None => {
                        let finality = finality.unwrap_or(Finality::Exhausted);
                        JournalState::Failed { failure, finality }
                    }
                };
                journal.set(step, *position, *attempt, state);
            }
            EventKind::SleepScheduled { step, position, until } => {
                journal.set(step, *position, 0, JournalState::Sleeping { until: *until });
            }
            EventKind::SleepOver { step } => journal.wake(step),
            EventKind::LabelSet { step, position, .. } => {
                let result = Payload::new(&b""[..]);
                journal.set(step, *position, 1, JournalState::Completed { result });
            }
            EventKind::RunClaimed { slept, .. } => slept.iter().for_each(|step| journal.wake(step)),
            EventKind::RunResumed => journal.retry_now(event.at),
            EventKind::RunRetried { .. } | EventKind::RunReopened => {
                journal.retry_now(event.at);
                journal.forgive(event.at);
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
            | EventKind::RunTimedOut { .. }
            | EventKind::HandlerStarted { .. }
            | EventKind::HandlerEnded { .. } => {}
        }
    }
    journal.entries
}

#[derive(Default)]
struct Journal {
    entries: Vec<JournalEntry>,
    index: HashMap<Name, usize>,
}

impl Journal {
    fn entry(&mut self, path: &Name, position: u32, state: JournalState) -> &mut JournalEntry {
        let at = *self.index.entry(path.clone()).or_insert_with(|| {
            let path = path.clone();
            self.entries.push(JournalEntry { path, position, attempts: 0, state, progress: None });
            self.entries.len() - 1
        });
        &mut self.entries[at]
    }

    fn set(&mut self, path: &Name, position: u32, attempts: u32, state: JournalState) {
        let entry = self.entry(path, position, state.clone());
        (entry.position, entry.attempts, entry.state) = (position, attempts, state);
    }

    fn wake(&mut self, path: &Name) {
        if let Some(at) = self.index.get(path) {
            self.entries[*at].state = JournalState::Slept;
        }
    }

    /// Somebody said "now": whatever waits for its retry may begin at once.
    fn retry_now(&mut self, now: Timestamp) {
        for entry in &mut self.entries {
            if let JournalState::Retry { at, .. } = &mut entry.state {
                *at = (*at).min(now);
            }
        }
    }

    /// Failed steps begin anew.
    fn forgive(&mut self, now: Timestamp) {
        for entry in &mut self.entries {
            if let JournalState::Failed { failure, .. } = &entry.state {
                entry.state = JournalState::Retry { at: now, failure: failure.clone() };
            }
        }
    }
}
