//! The step attempts of a run, as people read them.

use std::collections::HashMap;

use super::{Projection, project};
use crate::{Event, EventKind, Failure, Millis, Name, Timestamp, WorkerId, codes, only_told};

/// One execution of one step, for people.
#[derive(Debug, Clone, PartialEq)]
pub struct StepAttempt {
    /// The event that told of it first: its place in the list, for ever. None for one that only a worker
    /// tells of.
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
    /// It waits for a signal.
    Waiting {
        until: Option<Timestamp>,
    },
}

/// Every attempt of every step, oldest first. Payloads are not looked at: an outline is enough.
pub fn attempts(events: &[Event]) -> Vec<StepAttempt> {
    project::<Attempts>(events).into_list()
}

impl Projection for Attempts {
    fn absorb(&mut self, event: &Event) {
        match &event.kind {
            EventKind::RunClaimed { worker: claimed, slept, .. } => {
                self.worker = Some(*claimed);
                slept.iter().for_each(|step| self.end_sleep(step, event.at));
            }
            EventKind::StepStarted { step, position, attempt, .. } => self.push(StepAttempt {
                seq: Some(event.seq),
                path: step.clone(),
                position: *position,
                attempt: *attempt,
                worker: self.worker,
                started_at: Some(event.at),
                finished_at: None,
                state: AttemptState::Running,
                latest: true,
            }),
            EventKind::StepCompleted { step, position, attempt, elapsed_ms } => {
                let ended = Ended {
                    seq: event.seq,
                    at: event.at,
                    began: began(event.at, *elapsed_ms),
                    worker: self.worker,
                };
                let state = AttemptState::Completed { recorded_seq: event.seq };
                self.finish((step, *position, *attempt), ended, state);
            }
            EventKind::StepFailed { step, position, attempt, failure, retry_at, elapsed_ms, .. } => {
                let state = AttemptState::Failed { failure: failure.clone(), retry_at: *retry_at };
                let ended = Ended {
                    seq: event.seq,
                    at: event.at,
                    began: began(event.at, *elapsed_ms),
                    worker: self.worker,
                };
                self.finish((step, *position, *attempt), ended, state);
            }
            EventKind::SleepScheduled { step, position, until } => self.push(StepAttempt {
                seq: Some(event.seq),
                path: step.clone(),
                position: *position,
                attempt: 1,
                worker: self.worker,
                started_at: Some(event.at),
                finished_at: None,
                state: AttemptState::Sleeping { until: *until },
                latest: true,
            }),
            EventKind::WaitBegan { step, position, until, .. }
            | EventKind::ChildStarted { step, position, until, awaited: true, .. } => {
                self.push(StepAttempt {
                    seq: Some(event.seq),
                    path: step.clone(),
                    position: *position,
                    attempt: 1,
                    worker: self.worker,
                    started_at: Some(event.at),
                    finished_at: None,
                    state: AttemptState::Waiting { until: *until },
                    latest: true,
                })
            }
            EventKind::WaitEnded { step, position, received, failure, .. } => {
                let state = match failure.clone() {
                    None => AttemptState::Completed { recorded_seq: received.unwrap_or(event.seq) },
                    Some(failure) => AttemptState::Failed { failure, retry_at: None },
                };
                let ended = Ended { seq: event.seq, at: event.at, began: None, worker: self.worker };
                self.end_wait((step, *position), ended, state);
            }
            EventKind::ChannelClosed { step, position, .. } => {
                let ended = Ended { seq: event.seq, at: event.at, began: None, worker: self.worker };
                self.end_wait((step, *position), ended, AttemptState::Slept);
            }
            EventKind::SleepOver { step } => self.end_sleep(step, event.at),
            EventKind::RunFailed { failure, .. } | EventKind::RunTimedOut { failure } => {
                self.cut_off(event.at, failure, None);
            }
            EventKind::RunCancelled { reason, .. } => {
                self.cut_off(event.at, &Failure::new(codes::CANCELLED, reason), None);
            }
            EventKind::LeaseLost { worker, retry_at, .. } => {
                let lost = Failure::new(codes::WORKER_LOST, &format!("worker {worker} was lost"));
                self.cut_off(event.at, &lost, *retry_at);
            }
            EventKind::RunReleased { why } => {
                self.cut_off(event.at, &Failure::new(codes::RELEASED, why), Some(event.at));
            }
            EventKind::RunParked { due_at, .. } => {
                let taken = Failure::new(codes::LEASE_LOST, "the run was taken from its worker");
                self.cut_off(event.at, &taken, due_at.or(Some(event.at)));
            }
            EventKind::StepClosed { step, attempt, .. } => {
                let dropped =
                    Failure::new(codes::ABANDONED, "the code dropped the step; its outcome is unknown");
                if let Some(known) = self.take_running(step, *attempt) {
                    known.state = AttemptState::Failed { failure: dropped, retry_at: None };
                    known.finished_at = Some(event.at);
                }
            }
            // What came before belongs to code that has ended.
            EventKind::RunContinued { .. } => *self = Attempts::default(),
            EventKind::RunStarted
            | EventKind::SignalReceived { .. }
            | EventKind::RunPaused { .. }
            | EventKind::RunResumed { .. }
            | EventKind::RunCompleted
            | EventKind::StepProgressed { .. }
            | EventKind::RunRetried { .. }
            | EventKind::RunReopened { .. }
            | EventKind::ChildStarted { awaited: false, .. }
            | EventKind::ChildrenClosed { .. }
            | EventKind::HandlerStarted { .. }
            | only_told!()
            | EventKind::Unknown { .. }
            | EventKind::PromiseMade { .. }
            | EventKind::PromiseBeat { .. }
            | EventKind::ValueSet { .. }
            | EventKind::LabelSet { .. } => {}
        }
    }
}

/// The list in the making. A run may have a hundred thousand attempts, so nothing here looks through all of
/// them.
#[derive(Default)]
pub struct Attempts {
    all: Vec<StepAttempt>,
    /// The worker that was given the run last.
    worker: Option<WorkerId>,
    /// The newest attempt of each step.
    newest: HashMap<Name, usize>,
    /// Those that run, by step and attempt; one that was told of twice stands here twice.
    running: HashMap<(Name, u32), Vec<usize>>,
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

impl Attempts {
    /// The list, oldest first.
    pub fn into_list(self) -> Vec<StepAttempt> {
        self.all
    }

    fn push(&mut self, attempt: StepAttempt) {
        let place = self.all.len();
        if let Some(former) = self.newest.insert(attempt.path.clone(), place) {
            self.all[former].latest = false;
        }
        if attempt.state == AttemptState::Running {
            self.running.entry((attempt.path.clone(), attempt.attempt)).or_default().push(place);
        }
        self.all.push(attempt);
    }

    /// An attempt that was told to have begun, and does not run any more.
    fn take_running(&mut self, path: &Name, attempt: u32) -> Option<&mut StepAttempt> {
        let place = self.running.get_mut(&(path.clone(), attempt))?.pop()?;
        self.all.get_mut(place)
    }

    /// Ends the attempt that was told to have begun, or adds one that was not.
    fn finish(&mut self, (path, position, attempt): (&Name, u32, u32), ended: Ended, state: AttemptState) {
        if let Some(known) = self.take_running(path, attempt) {
            known.finished_at = Some(ended.at);
            known.state = state;
            return;
        }
        self.push(StepAttempt {
            seq: Some(ended.seq),
            path: path.clone(),
            position,
            attempt,
            worker: ended.worker,
            started_at: ended.began.or(Some(ended.at)),
            finished_at: Some(ended.at),
            state,
            latest: true,
        });
    }

    /// Ends what was being executed when the run left its worker: nobody will hear of it any more.
    fn cut_off(&mut self, at: Timestamp, why: &Failure, retry_at: Option<Timestamp>) {
        for place in self.running.drain().flat_map(|(_, places)| places) {
            let attempt = &mut self.all[place];
            attempt.state = AttemptState::Failed { failure: why.clone(), retry_at };
            attempt.finished_at = Some(at);
        }
    }

    /// Ends a wait that was told to have begun, or adds one that found its signal waiting.
    fn end_wait(&mut self, (path, position): (&Name, u32), ended: Ended, state: AttemptState) {
        let waits = |attempt: &&mut StepAttempt| matches!(attempt.state, AttemptState::Waiting { .. });
        let newest = self.newest.get(path).and_then(|place| self.all.get_mut(*place));
        match newest.filter(waits) {
            Some(wait) => (wait.state, wait.finished_at) = (state, Some(ended.at)),
            None => self.finish((path, position, 1), ended, state),
        }
    }

    fn end_sleep(&mut self, path: &Name, at: Timestamp) {
        if let Some(place) = self.newest.get(path) {
            let sleep = &mut self.all[*place];
            sleep.state = AttemptState::Slept;
            sleep.finished_at = Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looking through the list for each of them would take minutes.
    #[test]
    fn the_attempts_of_a_run_with_many_steps_and_parks_are_listed_in_linear_time() {
        const STEPS: u32 = 50_000;
        let mut events = Vec::new();
        let mut tell = |kind| {
            let seq = events.len() as u64 + 1;
            events.push(Event { seq, at: Timestamp(1), kind, payload: None });
        };
        for n in 0..STEPS {
            let (step, position, attempt, elapsed_ms) = (Name::from(format!("look#{n}")), n, 1, 0);
            tell(EventKind::StepCompleted { step, position, attempt, elapsed_ms });
            tell(EventKind::RunParked {
                due_at: Some(Timestamp(2)),
                closes: vec![],
                opens: vec![],
                waits: vec![],
                wake: None,
            });
        }

        let listed = attempts(&events);

        assert_eq!(listed.len(), STEPS as usize);
        assert!(listed.iter().all(|attempt| attempt.latest && attempt.finished_at.is_some()));
    }
}
