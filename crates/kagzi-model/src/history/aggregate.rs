//! A run with its steps, rebuilt from its events. Stores keep it in memory while the run is busy.

use std::collections::{HashMap, HashSet, hash_map::Entry};

use super::Projection;
use crate::{
    Change, Event, EventKind, Failure, Finality, Mail, Millis, Name, Promise, Run, RunId, Step, StepEnd,
    StepState, Timestamp, Unread, Wait,
    codes::WORKER_LOST,
    limits::{IDLE_PARK_MS, IDLE_PARKS_FREE, IDLE_PARKS_MAX, REQUESTS_KEPT},
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
    /// Parks in a row that were due at once although nothing had been recorded since the claim.
    pub idle_parks: u32,
    /// The latest requests of operators that were carried out.
    pub requests: Vec<Name>,
    /// The first line of its history that is not understood here: whatever is decided without it may be
    /// wrong.
    pub unknown: Option<Name>,
    /// What others told it, and which waits are open; none for a run that never had to do with either.
    pub mail: Option<Box<Mail>>,
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
        }
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
            releases: self.releases,
        }
    }

    /// The step's result was recorded.
    pub fn has_result(&self, step: &Name) -> bool {
        self.steps.get(step).is_some_and(|step| matches!(step.state, StepState::Done(StepEnd::Recorded)))
    }

    /// Takes a decision over: new row, steps as the events say, sequence numbers used up.
    pub fn apply<R>(&mut self, now: Timestamp, change: &Change<R>) {
        if let Some(run) = &change.run {
            self.run = run.clone();
        }
        for (kind, payload) in &change.events {
            self.absorb(now, kind);
            self.weigh(payload.as_ref().map_or(0, |payload| payload.data.len() as u64));
        }
    }

    /// Adds the payload of an event to what the history weighs.
    pub fn weigh(&mut self, payload_bytes: u64) {
        self.history_bytes = self.history_bytes.saturating_add(payload_bytes);
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
            }
            EventKind::StepFailed { step, position, attempt, failure, retry_at, finality, .. } => {
                let failure = failure.clone();
                let state = match retry_at {
                    // A lost worker uses up nothing of what all steps share.
                    Some(due) if *failure.code == *WORKER_LOST => {
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
            EventKind::SignalReceived { channel, id, failure } => {
                let (seq, id, failure) = (self.last_seq, id.clone(), failure.clone());
                self.mail_mut().receive(channel, Unread { seq, id, failure });
            }
            EventKind::WaitBegan { step, position, channel, until } => {
                let wait = Wait::Signal { channel: channel.clone(), until: *until };
                self.put(at, (step, *position), (0, false), StepState::Waiting(wait));
                self.mail_mut().wait(channel, step, *until);
                self.moved = true;
            }
            EventKind::WaitEnded { step, position, channel, id, received, failure } => {
                let end = match failure.clone() {
                    None => StepEnd::Recorded,
                    Some(failure) => StepEnd::Failed { failure, finality: Finality::Rejected },
                };
                self.put(at, (step, *position), (1, true), StepState::Done(end));
                let (id, failure) = (id.clone(), failure.clone());
                let seq = received.unwrap_or(self.last_seq);
                self.mail_mut().take(step, channel, Unread { seq, id, failure });
            }
            EventKind::ChannelClosed { step, position, channel } => {
                self.put(at, (step, *position), (1, true), StepState::Done(StepEnd::Recorded));
                let mail = self.mail_mut();
                mail.leave(channel, step);
                mail.close(step, channel);
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
            }
            EventKind::RunFailed { step, .. } => self.failed_by.clone_from(step),
            EventKind::HandlerStarted { handler, .. } => self.handlers.push(*handler),
            EventKind::Unknown { name, .. } => drop(self.unknown.get_or_insert_with(|| name.clone())),
            EventKind::RunReleased { .. } => self.releases = self.releases.saturating_add(1),
            EventKind::RunStarted
            | EventKind::StepProgressed { .. }
            | EventKind::LeaseLost { .. }
            | EventKind::RunPaused { .. }
            | EventKind::RunCompleted
            | EventKind::RunCancelled { .. }
            | EventKind::RunTimedOut { .. }
            | only_told!() => {}
        }
    }

    /// The step that lets the run go on first, and when.
    pub fn earliest_due(&self) -> Option<(&Step, Timestamp)> {
        self.open_steps()
            .filter_map(|step| step.due_at().map(|at| (step, at)))
            .min_by(|(a, a_at), (b, b_at)| (a_at, &a.path).cmp(&(b_at, &b.path)))
    }

    /// The steps that run, sleep or wait for a retry and that the code has not dropped, in no order.
    pub fn open_steps(&self) -> impl Iterator<Item = &Step> {
        self.open.iter().map(|path| &self.steps[path])
    }

    /// Notes where a step stands. `told`: the function hears that it has ended for good. One look-up, because
    /// every recorded step comes through here.
    fn put(
        &mut self,
        at: Timestamp,
        (path, position): (&Name, u32),
        (attempts, told): (u32, bool),
        state: StepState,
    ) {
        let is_open = state.is_open();
        let was_open = match self.steps.entry(path.clone()) {
            Entry::Occupied(mut known) => {
                let known = known.get_mut();
                let was_open = known.unfinished() && !known.closed;
                (known.position, known.attempts, known.closed, known.state) =
                    (position, attempts, false, state);
                if told && known.order == 0 {
                    self.told += 1;
                    known.order = self.told;
                }
                was_open
            }
            Entry::Vacant(place) => {
                let after = self.told;
                self.told += u32::from(told);
                let order = if told { self.told } else { 0 };
                let (path, since, attempts_before_reset, closed) = (path.clone(), at, 0, false);
                place.insert(Step {
                    path,
                    position,
                    attempts,
                    attempts_before_reset,
                    since,
                    order,
                    after,
                    closed,
                    state,
                });
                false
            }
        };
        self.moved |= told;
        match (was_open, is_open) {
            (false, true) => drop(self.open.insert(path.clone())),
            (true, false) => drop(self.open.remove(path)),
            (false, false) | (true, true) => {}
        }
    }

    /// How many steps run or wait and were not dropped.
    pub fn open_len(&self) -> usize {
        self.open.len()
    }

    /// The oldest open wait on this channel that the code has not dropped.
    pub fn waits_on(&self, channel: &Name) -> Option<&Step> {
        let waits = |step: &&Step| {
            matches!(&step.state, StepState::Waiting(wait) if wait.channel() == Some(channel)) && !step.closed
        };
        self.mail.as_deref()?.waiting(channel).filter_map(|path| self.steps.get(path)).find(waits)
    }

    /// A signal that this step waits for is there and was not taken.
    pub fn is_signalled(&self, step: &Step) -> bool {
        match (&step.state, self.mail.as_deref()) {
            (StepState::Waiting(wait), Some(mail)) => {
                wait.channel().is_some_and(|channel| mail.next(channel).is_some())
            }
            (StepState::Waiting(_) | StepState::Running { .. } | StepState::Done(_), _) => false,
        }
    }

    fn mail_mut(&mut self) -> &mut Mail {
        self.mail.get_or_insert_default()
    }

    /// The channel on which the step waits, if it does.
    fn channel_of(&self, path: &Name) -> Option<Name> {
        match &self.steps.get(path)?.state {
            StepState::Waiting(wait) => wait.channel().cloned(),
            StepState::Running { .. } | StepState::Done(_) => None,
        }
    }

    fn open_again(&mut self, path: &Name) {
        let Some(step) = self.steps.get_mut(path).filter(|step| step.unfinished()) else { return };
        step.closed = false;
        self.open.insert(step.path.clone());
        if let Some(channel) = self.channel_of(path) {
            let until = self.steps[path].waits_until();
            self.mail_mut().wait(&channel, path, until);
        }
    }

    fn wake(&mut self, at: Timestamp, path: &Name) {
        if let Some(channel) = self.channel_of(path) {
            let mail = self.mail_mut();
            mail.leave(&channel, path);
            if let Some(promise) = mail.promise_on_mut(&channel) {
                promise.silent = promise.is_silent_at(at);
            }
        }
        if let Some(step) = self.steps.get_mut(path) {
            step.state = StepState::Done(StepEnd::Elapsed);
            step.closed = false;
            self.open.remove(path);
            self.tell(path);
        }
    }

    /// The function is told that the step has ended for good.
    fn tell(&mut self, path: &Name) {
        self.moved = true;
        if let Some(step) = self.steps.get_mut(path)
            && step.order == 0
        {
            self.told += 1;
            step.order = self.told;
        }
    }

    /// The code has dropped the step. One that ended while the code was dropping it was not told of: its end
    /// is taken out of the order, and it stands where it stood before.
    fn close(&mut self, at: Timestamp, path: &Name) {
        let Some(step) = self.steps.get_mut(path) else { return };
        let unheard = step.is_told_last(self.told);
        let mail = self.mail.as_deref_mut().filter(|mail| mail.is_wait(path));
        let before = match &step.state {
            StepState::Running { .. } | StepState::Waiting(_) => {
                step.closed = true;
                self.open.remove(path);
                return;
            }
            StepState::Done(_) if !unheard => return,
            StepState::Done(_) if let Some(mail) = mail => {
                mail.give_back(path, at).map(|(channel, until)| Wait::Signal { channel, until })
            }
            StepState::Done(StepEnd::Recorded) => return,
            StepState::Done(StepEnd::Failed { failure, .. }) => {
                Some(Wait::Retry { at, failure: failure.clone() })
            }
            StepState::Done(StepEnd::Elapsed) => Some(Wait::Timer { until: at }),
            StepState::Done(StepEnd::Labelled) => None,
        };
        self.told -= 1;
        match before {
            Some(wait) => (step.state, step.order, step.closed) = (StepState::Waiting(wait), 0, true),
            None => drop(self.steps.remove(path)),
        }
    }

    /// An operator's word: the count of idle parks begins anew.
    fn heed(&mut self, request: Option<&Name>) {
        self.idle_parks = 0;
        if let Some(request) = request {
            if self.requests.len() >= REQUESTS_KEPT {
                self.requests.remove(0);
            }
            self.requests.push(request.clone());
        }
    }

    /// Whether an operator's request was carried out before.
    pub fn was_requested(&self, request: Option<&Name>) -> bool {
        request.is_some_and(|request| self.requests.contains(request))
    }

    /// Whether the step has failed and the function was told so.
    pub fn failed_for_good(&self, path: &Name) -> bool {
        self.steps.get(path).is_some_and(|step| matches!(step.state, StepState::Done(StepEnd::Failed { .. })))
    }

    /// The failures that may be forgiven, in the order in which the function was told of them: only the last
    /// ones, after which it was told of nothing but failures. What came before has been handled, and a replay
    /// takes the same path only as long as that stays. With `from` no failure before that step is among them,
    /// and none at all if the step itself is not.
    pub fn forgivable(&self, from: Option<&Name>) -> Vec<Name> {
        let failed =
            |step: &&Step| step.order > 0 && matches!(step.state, StepState::Done(StepEnd::Failed { .. }));
        let mut failed: Vec<&Step> = self.steps.values().filter(failed).collect();
        failed.sort_unstable_by_key(|step| std::cmp::Reverse(step.order));
        let last = |(back, step): &(u32, &Step)| step.order == self.told - back;
        let tail: Vec<&Step> = (0..).zip(failed).take_while(last).map(|(_, step)| step).collect();
        let earliest = match from {
            None => 0,
            Some(from) => match tail.iter().find(|step| step.path == *from) {
                Some(step) => step.order,
                None => return Vec::new(),
            },
        };
        let attempts_before_reset = tail.iter().rev().filter(|step| step.order >= earliest);
        attempts_before_reset.map(|step| step.path.clone()).collect()
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

    /// Somebody said "now": whatever waits for its retry may begin at once.
    fn retry_now(&mut self, now: Timestamp) {
        for path in &self.open {
            if let Some(Step { state: StepState::Waiting(wait), .. }) = self.steps.get_mut(path) {
                wait.hurry(now);
            }
        }
    }

    /// The named steps get a fresh set of attempts, and so do the run-wide limits. What was begun only
    /// because they had failed, and has not ended, is forgotten: the code may never come by there again.
    fn forgive(&mut self, now: Timestamp, forgives: &[Name]) {
        (self.retries, self.retry_ms, self.retry_after_ms_total) = (0, 0, 0);
        self.idle_parks = 0;
        let earliest = forgives.iter().filter_map(|path| Some(self.steps.get(path)?.order)).min();
        let Some(earliest) = earliest else { return };
        let open = &mut self.open;
        self.steps.retain(|path, step| {
            let stays = !step.unfinished() || step.after < earliest;
            if !stays {
                open.remove(path);
            }
            stays
        });
        self.told = earliest.saturating_sub(1);
        for path in forgives {
            if let Some(step) = self.steps.get_mut(path)
                && let StepState::Done(StepEnd::Failed { failure, .. }) = &step.state
            {
                let failure = failure.clone();
                step.attempts_before_reset = step.attempts;
                step.since = now;
                step.order = 0;
                step.state = StepState::Waiting(Wait::Retry { at: now, failure });
                self.open.insert(step.path.clone());
            }
        }
    }
}

impl Projection for Aggregate {
    fn absorb(&mut self, event: &Event) {
        Aggregate::absorb(self, event.at, &event.kind);
        self.last_seq = event.seq;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, Payload, RunOptions, StartRun, decide};

    fn started() -> Run {
        let id = RunId(uuid::Uuid::from_u128(1));
        let start = Command::start(StartRun {
            namespace: "shop".into(),
            id,
            business_id: None,
            workflow_type: "watch".into(),
            task_queue: "orders".into(),
            input: Payload::new(&b"{}"[..]),
            deadline_at: None,
            options: RunOptions::default(),
            labels: Default::default(),
            signals: Vec::new(),
        });
        decide(Timestamp(1), None, None, &start).unwrap().run.unwrap()
    }

    /// What a claim visits is what is open, however much was recorded before.
    #[test]
    fn a_claim_visits_the_open_steps_and_no_others() {
        let mut seen = Aggregate::new(started(), 0);
        let name = |kind: &str, round: u32| Name::from(format!("{kind}#{round}"));
        for round in 0..1_000 {
            let (poll, nap) = (name("poll", round), name("nap", round));
            let (attempt, elapsed_ms) = (1, 0);
            let position = round * 2;
            let kind = EventKind::StepCompleted { step: poll, position, attempt, elapsed_ms };
            seen.absorb(Timestamp(1), &kind);
            let sleep =
                EventKind::SleepScheduled { step: nap.clone(), position: position + 1, until: Timestamp(2) };
            seen.absorb(Timestamp(1), &sleep);
            assert_eq!(seen.open_steps().count(), 1, "round {round}");
            seen.absorb(Timestamp(2), &EventKind::SleepOver { step: nap });
        }

        assert_eq!(seen.steps.len(), 2_000);
        assert_eq!(seen.open_steps().count(), 0);
    }
}
