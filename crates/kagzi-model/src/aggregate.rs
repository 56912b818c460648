//! A run with its steps, rebuilt from its events. Stores keep it in memory while the run is busy.

use std::collections::HashMap;

use crate::{Change, EventKind, Name, Run, Step, StepState, Timestamp};

/// All that [`crate::decide`] may look at. Steps are never stored apart: they are what the events say.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    pub run: Run,
    pub steps: HashMap<Name, Step>,
    /// The sequence number of the last event.
    pub last_seq: u64,
}

impl Aggregate {
    /// A run as loaded, before its events are absorbed.
    pub fn new(run: Run, last_seq: u64) -> Self {
        Aggregate { run, steps: HashMap::new(), last_seq }
    }

    /// Takes a decision over: new row, steps as the events say, sequence numbers used up.
    pub fn apply(&mut self, now: Timestamp, change: &Change) {
        if let Some(run) = &change.run {
            self.run = run.clone();
        }
        for (kind, _) in &change.events {
            self.absorb(now, kind);
        }
        self.last_seq += change.events.len() as u64;
    }

    /// Updates the steps by one event. Loading a run replays its events through here, so memory and disk agree.
    pub fn absorb(&mut self, at: Timestamp, kind: &EventKind) {
        match kind {
            EventKind::StepStarted { step, position, attempt } => {
                let attempts = attempt.saturating_sub(1);
                self.put(step, *position, attempts, StepState::Running { since: at });
            }
            EventKind::StepCompleted { step, position, attempt, .. } => {
                self.put(step, *position, *attempt, StepState::Completed);
            }
            EventKind::StepFailed { step, position, attempt, failure, retry_at } => {
                let failure = failure.clone();
                let state = match retry_at {
                    Some(at) => StepState::Retry { at: *at, failure },
                    None => StepState::Failed { failure },
                };
                self.put(step, *position, *attempt, state);
            }
            EventKind::SleepScheduled { step, position, until } => {
                self.put(step, *position, 0, StepState::Sleeping { until: *until });
            }
            EventKind::SleepOver { step } => self.wake(step),
            EventKind::RunClaimed { slept, .. } => slept.iter().for_each(|step| self.wake(step)),
            EventKind::RunResumed => {
                // A person said "now": whatever waits for its retry may begin at once.
                for step in self.steps.values_mut() {
                    if let StepState::Retry { at: due, .. } = &mut step.state {
                        *due = (*due).min(at);
                    }
                }
            }
            EventKind::RunStarted
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

    /// The step that lets the run go on first, and when.
    pub fn earliest_due(&self) -> Option<(&Step, Timestamp)> {
        self.steps
            .values()
            .filter_map(|step| step.due_at().map(|at| (step, at)))
            .min_by(|(a, a_at), (b, b_at)| (a_at, &a.path).cmp(&(b_at, &b.path)))
    }

    fn put(&mut self, path: &Name, position: u32, attempts: u32, state: StepState) {
        let step = Step { path: path.clone(), position, attempts, state };
        self.steps.insert(path.clone(), step);
    }

    fn wake(&mut self, path: &Name) {
        if let Some(step) = self.steps.get_mut(path) {
            step.state = StepState::Slept;
        }
    }
}
