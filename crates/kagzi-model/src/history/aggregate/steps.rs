//! Where the steps of a run stand: which are open, which have ended, in which order the function was told.

use std::collections::hash_map::Entry;

use super::Aggregate;
use crate::history::scopes_around;
use crate::{Name, Step, StepEnd, StepState, Timestamp, Wait};

impl Aggregate {
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

    /// How many steps run or wait and were not dropped.
    pub fn open_len(&self) -> usize {
        self.open.len()
    }

    /// The step's result was recorded.
    pub fn has_result(&self, step: &Name) -> bool {
        self.steps.get(step).is_some_and(|step| matches!(step.state, StepState::Done(StepEnd::Recorded)))
    }

    /// Whether the step has failed and the function was told so.
    pub fn failed_for_good(&self, path: &Name) -> bool {
        self.steps.get(path).is_some_and(|step| matches!(step.state, StepState::Done(StepEnd::Failed { .. })))
    }

    /// Notes where a step stands. `told`: the function hears that it has ended for good. One look-up, because
    /// every recorded step comes through here.
    pub(super) fn put(
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

    /// The scope was recorded as one: what its code has left unfinished is dropped with it.
    pub(super) fn end_scope(&mut self, at: Timestamp, scope: &Name) {
        self.scopes += 1;
        let below: Vec<Name> = self.open.iter().filter(|path| path.starts_with(&**scope)).cloned().collect();
        below.iter().for_each(|path| self.close(at, path));
    }

    /// Whether the path lies in a scope that was recorded as one: nothing of it is heard any more.
    pub fn is_in_recorded_scope(&self, path: &str) -> bool {
        let recorded = |scope: &str| {
            let known = self.steps.get(scope);
            known.is_some_and(|known| matches!(known.state, StepState::Done(StepEnd::Recorded)))
        };
        self.scopes > 0 && scopes_around(path).any(recorded)
    }

    pub(super) fn open_again(&mut self, path: &Name) {
        let Some(step) = self.steps.get_mut(path).filter(|step| step.unfinished()) else { return };
        step.closed = false;
        self.open.insert(step.path.clone());
        if let Some(channel) = self.channel_of(path) {
            let until = self.steps[path].waits_until();
            self.mail_mut().wait(&channel, path, until);
        }
    }

    pub(super) fn wake(&mut self, at: Timestamp, path: &Name) {
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
    pub(super) fn close(&mut self, at: Timestamp, path: &Name) {
        let Some(step) = self.steps.get_mut(path) else { return };
        let unheard = step.is_told_last(self.told);
        let mail = self.mail.as_deref_mut().filter(|mail| mail.is_wait(path));
        let before = match &step.state {
            StepState::Running { .. } | StepState::Waiting(_) => {
                step.closed = true;
                self.open.remove(path);
                if let Some(mail) = mail {
                    mail.questions.remove(path);
                }
                return;
            }
            StepState::Done(_) if !unheard => return,
            StepState::Done(_) if let Some(mail) = mail => {
                mail.give_back(path, at).map(|(channel, until)| Wait::on(channel, until))
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Command, EventKind, Failure, Payload, Run, RunId, RunOptions, StartRun, codes::NOT_YET, decide,
    };

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

    /// A step that looks again and again is one step, and takes no retry from the others.
    #[test]
    fn a_thousand_looks_are_one_step_and_no_retry_of_the_run() {
        let mut seen = Aggregate::new(started(), 0);
        for attempt in 1..=1_000 {
            let looked = EventKind::StepFailed {
                step: "paid".into(),
                position: 0,
                attempt,
                failure: Failure::new(NOT_YET, "not yet"),
                retry_at: Some(Timestamp(i64::from(attempt) + 60_000)),
                finality: None,
                elapsed_ms: 1,
            };
            seen.absorb(Timestamp(i64::from(attempt)), &looked);
        }

        assert_eq!((seen.steps.len(), seen.open_steps().count()), (1, 1));
        assert_eq!((seen.retries, seen.retry_ms), (0, 0));
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
