//! A run with its steps, rebuilt from its events. Stores keep it in memory while the run is busy.

mod children;
mod mail;
mod orders;
mod steps;

use std::collections::{HashMap, HashSet};

use super::{ProgressKept, Projection, is_scope};
use crate::{
    Change, Event, EventKind, Failure, Family, Finality, Mail, Millis, Name, Promise, Run, RunId, Step,
    StepEnd, StepState, Timestamp, Unread, Wait, child_channel,
    codes::{NOT_YET, WORKER_LOST},
    limits::{IDLE_PARK_MS, IDLE_PARKS_FREE, IDLE_PARKS_MAX},
    only_told,
};

/// All that [`crate::decide`] may look at. Steps are never stored apart: they are what the events say.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    pub run: Run,
    pub steps: HashMap<Name, Step>,
    /// The steps that run, sleep or wait for a retry. A claim looks at these only: a run may have recorded a
    /// hundred thousand others.
    open: HashSet<Name>,
    /// The sequence number of the last event.
    pub last_seq: u64,
    /// Bytes of the payloads of all events.
    pub history_bytes: u64,
    /// How far its steps said that they were; none where no step ever did.
    pub progress: Option<Box<ProgressKept>>,
    /// Retries granted to all steps together, and the waiting they added up to: by policy, and because the
    /// failure itself named a time.
    pub retries: u32,
    pub retry_ms: Millis,
    pub retry_after_ms_total: Millis,
    /// How often in a row the run was given back without progress.
    pub releases: u32,
    /// Failure handlers that were started for it.
    pub handlers: Vec<RunId>,
    /// How much the function was told of: results, final failures, ends of sleeps and labels.
    pub told: u32,
    /// The step whose error ended the run, if it was one.
    pub failed_by: Option<Name>,
    /// Something was recorded since the last claim.
    pub moved: bool,
    /// Parks in a row that were due at once although nothing had been recorded since the claim, and
    /// generations in a row in which nothing was recorded.
    pub idle_parks: u32,
    /// The latest requests of operators that were carried out.
    pub requests: Vec<Name>,
    /// The first line of its history that is not understood here: whatever is decided without it may be
    /// wrong.
    pub unknown: Option<Name>,
    /// What others told it, and which waits are open; none for a run that never had to do with either.
    pub mail: Option<Box<Mail>>,
    /// The runs that it has started; none for a run that never started any.
    pub family: Option<Box<Family>>,
    /// The epoch of the lease that ended when the run continued in place; 0 as long as it never did.
    pub continued_under: u64,
    /// How many scopes were recorded as one.
    pub scopes: u32,
}

impl Aggregate {
    /// A run as loaded, before its events are absorbed.
    pub fn new(run: Run, last_seq: u64) -> Self {
        Aggregate {
            run,
            steps: HashMap::new(),
            open: HashSet::new(),
            last_seq,
            history_bytes: 0,
            progress: None,
            retries: 0,
            retry_ms: 0,
            retry_after_ms_total: 0,
            releases: 0,
            handlers: Vec::new(),
            told: 0,
            failed_by: None,
            moved: false,
            idle_parks: 0,
            requests: Vec::new(),
            unknown: None,
            mail: None,
            family: None,
            continued_under: 0,
            scopes: 0,
        }
    }

    /// A run as loaded, before the events of its living generation are absorbed.
    pub fn before_history(run: Run) -> Self {
        let last_seq = run.first_seq.saturating_sub(1);
        Aggregate::new(run, last_seq)
    }

    /// The run with its open steps only: enough to say what it waits for, at a cost that does not grow with
    /// its history.
    pub fn open_part(&self) -> Aggregate {
        let steps = self.open_steps().map(|step| (step.path.clone(), step.clone())).collect();
        Aggregate {
            run: self.run.clone(),
            steps,
            open: self.open.clone(),
            last_seq: self.last_seq,
            history_bytes: self.history_bytes,
            progress: self.progress.clone(),
            retries: self.retries,
            retry_ms: self.retry_ms,
            retry_after_ms_total: self.retry_after_ms_total,
            handlers: self.handlers.clone(),
            told: self.told,
            failed_by: self.failed_by.clone(),
            moved: self.moved,
            idle_parks: self.idle_parks,
            requests: self.requests.clone(),
            unknown: self.unknown.clone(),
            mail: self.mail.clone(),
            family: self.family.clone(),
            releases: self.releases,
            continued_under: self.continued_under,
            scopes: self.scopes,
        }
    }

    /// Takes a decision over: new row, steps as the events say, sequence numbers used up.
    pub fn apply<R>(&mut self, now: Timestamp, change: &Change<R>) {
        if let Some(run) = &change.run {
            self.run = run.clone();
        }
        for (kind, payload) in &change.events {
            self.absorb(now, kind);
            self.weigh(kind, payload.as_ref().map_or(0, |payload| payload.data.len() as u64));
        }
    }

    /// Adds the payload of an event to what the history weighs.
    pub fn weigh(&mut self, kind: &EventKind, payload_bytes: u64) {
        self.history_bytes = self.history_bytes.saturating_add(payload_bytes);
        if let (EventKind::StepProgressed { .. }, Some(progress)) = (kind, &mut self.progress) {
            progress.weigh(payload_bytes);
        }
    }

    /// Takes in the next event. Loading a run replays its events through here, so memory and disk agree.
    pub fn absorb(&mut self, at: Timestamp, kind: &EventKind) {
        self.last_seq += 1;
        if kind.is_progress() {
            self.releases = 0;
        }
        match kind {
            EventKind::StepStarted { step, position, attempt, timeout_at, policy } => {
                let state = StepState::Running { since: at, timeout_at: *timeout_at, policy: policy.clone() };
                self.put(at, (step, *position), (attempt.saturating_sub(1), false), state);
            }
            EventKind::StepCompleted { step, position, attempt, .. } => {
                self.put(at, (step, *position), (*attempt, true), StepState::Done(StepEnd::Recorded));
                if is_scope(step) {
                    self.end_scope(at, step);
                }
            }
            EventKind::StepFailed { step, position, attempt, failure, retry_at, finality, .. } => {
                let failure = failure.clone();
                let state = match retry_at {
                    // A lost worker and a look that found nothing use up nothing of what all steps share.
                    Some(due) if *failure.code == *WORKER_LOST || *failure.code == *NOT_YET => {
                        StepState::Waiting(Wait::Retry { at: *due, failure })
                    }
                    Some(due) => {
                        self.retries = self.retries.saturating_add(1);
                        let asked = failure.retry_after_ms.is_some();
                        let waited = if asked { &mut self.retry_after_ms_total } else { &mut self.retry_ms };
                        *waited = waited.saturating_add(due.remaining_ms(at));
                        StepState::Waiting(Wait::Retry { at: *due, failure })
                    }
                    None => StepState::Done(StepEnd::Failed {
                        failure,
                        finality: finality.unwrap_or(Finality::Exhausted),
                    }),
                };
                let last = matches!(state, StepState::Done(StepEnd::Failed { .. }));
                self.put(at, (step, *position), (*attempt, last), state);
                self.moved = true;
            }
            EventKind::SleepScheduled { step, position, until } => {
                self.put(
                    at,
                    (step, *position),
                    (0, false),
                    StepState::Waiting(Wait::Timer { until: *until }),
                );
                self.moved = true;
            }
            EventKind::SleepOver { step } => self.wake(at, step),
            EventKind::LabelSet { step, position, .. } => {
                self.put(at, (step, *position), (1, true), StepState::Done(StepEnd::Labelled));
            }
            EventKind::PromiseMade { step, position, name, token_hash, until, heartbeat_ms } => {
                self.put(at, (step, *position), (1, true), StepState::Done(StepEnd::Labelled));
                let promise = Promise::new(at, step, token_hash, *until, *heartbeat_ms);
                self.mail_mut().make_promise(name, promise);
            }
            EventKind::PromiseBeat { name, until } => {
                let (waits, due_at) = self.mail_mut().beat(name, *until);
                for path in waits {
                    if let Some(step) = self.steps.get_mut(&path)
                        && let StepState::Waiting(Wait::Signal { until, .. }) = &mut step.state
                    {
                        *until = due_at;
                    }
                }
            }
            EventKind::ValueSet { name, number } => self.mail_mut().set_value(name, *number),
            EventKind::RunClaimed { slept, .. } => {
                self.moved = false;
                // What an earlier worker was running when it lost the run begins anew.
                let steps = &mut self.steps;
                self.open.retain(|path| {
                    let step = steps.get_mut(path).expect("an open step is known");
                    if !matches!(step.state, StepState::Running { .. }) {
                        return true;
                    }
                    if step.attempts == 0 {
                        steps.remove(path);
                        return false;
                    }
                    let failure = Failure::new(WORKER_LOST, "its worker was lost");
                    step.state = StepState::Waiting(Wait::Retry { at, failure });
                    true
                });
                slept.iter().for_each(|step| self.wake(at, step));
            }
            EventKind::StepClosed { step, .. } => self.close(at, step),
            EventKind::RunParked { due_at, closes, opens, .. } => {
                self.idle_parks = if self.is_idle_park(at, *due_at) { self.idle_parks + 1 } else { 0 };
                closes.iter().for_each(|step| self.close(at, step));
                opens.iter().for_each(|step| self.open_again(step));
            }
            EventKind::SignalReceived { channel, id, failure, published } => {
                self.hear_of_child(channel);
                self.hear_event(channel, *published);
                let (seq, id, failure) = (self.last_seq, id.clone(), failure.clone());
                self.mail_mut().receive(channel, Unread { seq, id, failure });
            }
            EventKind::WaitBegan { step, position, channel, until } => {
                let wait = Wait::on(channel.clone(), *until);
                self.put(at, (step, *position), (0, false), StepState::Waiting(wait));
                self.mail_mut().wait(channel, step, *until);
                self.note_question(at, channel, step);
                self.moved = true;
            }
            EventKind::WaitEnded { step, position, channel, id, received, failure, published } => {
                let end = match failure.clone() {
                    None => StepEnd::Recorded,
                    Some(failure) => StepEnd::Failed { failure, finality: Finality::Rejected },
                };
                self.put(at, (step, *position), (1, true), StepState::Done(end));
                self.hear_of_child(channel);
                self.hear_event(channel, *published);
                let (id, failure) = (id.clone(), failure.clone());
                let seq = received.unwrap_or(self.last_seq);
                let mail = self.mail_mut();
                mail.take(step, channel, Unread { seq, id, failure });
                mail.questions.remove(step);
            }
            EventKind::ChannelClosed { step, position, channel } => {
                self.put(at, (step, *position), (1, true), StepState::Done(StepEnd::Recorded));
                let mail = self.mail_mut();
                mail.leave(channel, step);
                mail.close(step, channel);
            }
            EventKind::ChildStarted { step, position, child, close, awaited, until, told, .. } => {
                self.family.get_or_insert_default().start(step, *child, *close, *told);
                if *awaited {
                    let channel = child_channel(*child);
                    let wait = Wait::on(channel.clone(), *until);
                    self.put(at, (step, *position), (0, false), StepState::Waiting(wait));
                    self.mail_mut().wait(&channel, step, *until);
                    self.moved = true;
                } else {
                    self.put(at, (step, *position), (1, true), StepState::Done(StepEnd::Recorded));
                }
            }
            EventKind::ChildrenClosed { children } => {
                if let Some(family) = &mut self.family {
                    family.close(children);
                }
            }
            EventKind::RunResumed { request, .. } => {
                self.heed(request.as_ref());
                self.retry_now(at);
            }
            EventKind::RunRetried { forgives, .. } => {
                self.retry_now(at);
                self.forgive(at, forgives);
            }
            EventKind::RunReopened { forgives, request, .. } => {
                self.heed(request.as_ref());
                self.failed_by = None;
                self.retry_now(at);
                self.forgive(at, forgives);
                self.forget_closed_children(at);
            }
            EventKind::RunContinued {
                epoch,
                taken,
                unread,
                closed,
                requests,
                handlers,
                children,
                heard,
                heard_others,
                idle,
                ..
            } => {
                *self = Aggregate {
                    requests: requests.clone(),
                    handlers: handlers.clone(),
                    mail: Mail::beginning(taken, unread, closed, heard, *heard_others),
                    family: Family::beginning(children),
                    continued_under: *epoch,
                    idle_parks: *idle,
                    unknown: self.unknown.take(),
                    ..Aggregate::new(self.run.clone(), self.last_seq)
                };
            }
            EventKind::RunFailed { step, .. } => {
                self.failed_by.clone_from(step);
                self.forget_questions();
            }
            EventKind::RunCompleted | EventKind::RunCancelled { .. } | EventKind::RunTimedOut { .. } => {
                self.forget_questions();
            }
            EventKind::HandlerStarted { handler, .. } => self.handlers.push(*handler),
            EventKind::Unknown { name, .. } => drop(self.unknown.get_or_insert_with(|| name.clone())),
            EventKind::RunReleased { .. } => self.releases = self.releases.saturating_add(1),
            EventKind::StepProgressed { step, .. } => {
                self.progress.get_or_insert_default().heard(at, step);
            }
            EventKind::RunStarted
            | EventKind::LeaseLost { .. }
            | EventKind::RunPaused { .. }
            | only_told!() => {}
        }
    }

    /// How long a park is put off that would be due at once although nothing was recorded since the claim.
    /// Whatever a worker does, it cannot make a run spin.
    pub fn idle_delay_ms(&self) -> Millis {
        match self.idle_parks {
            few if few < IDLE_PARKS_FREE => 0,
            many => IDLE_PARK_MS << (many - IDLE_PARKS_FREE).min(IDLE_PARKS_MAX),
        }
    }

    /// Whether a park at `at` is one of a run that only spins.
    pub fn is_idle_park(&self, at: Timestamp, due_at: Option<Timestamp>) -> bool {
        !self.moved && due_at.is_some_and(|due_at| due_at <= at.plus_ms(self.idle_delay_ms()))
    }
}

impl Projection for Aggregate {
    fn absorb(&mut self, event: &Event) {
        Aggregate::absorb(self, event.at, &event.kind);
        self.last_seq = event.seq;
    }
}
