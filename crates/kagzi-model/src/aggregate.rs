//! A run with its steps, rebuilt from its events. Stores keep it in memory while the run is busy.

use std::collections::{HashMap, HashSet};

use crate::{Change, EventKind, Failure, Finality, Millis, Name, Run, RunId, Step, StepState, Timestamp};

/// All that [`crate::decide`] may look at. Steps are never stored apart: they are what the events say.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    pub run: Run,
    pub steps: HashMap<Name, Step>,
    /// The steps that run, sleep or wait for a retry. A claim looks at these only: a run may have recorded a hundred
    /// thousand others.
    open: HashSet<Name>,
    /// The sequence number of the last event.
    pub last_seq: u64,
    /// Retries granted to all steps together, and the waiting they added up to: by policy, and because the
    /// failure itself named a time.
    pub retries: u32,
    pub retry_ms: Millis,
    pub asked_ms: Millis,
    /// Failure handlers that were started for it.
    pub handlers: Vec<RunId>,
}

impl Aggregate {
    /// A run as loaded, before its events are absorbed.
    pub fn new(run: Run, last_seq: u64) -> Self {
        let (retries, retry_ms, asked_ms) = (0, 0, 0);
        let (steps, open, handlers) = (HashMap::new(), HashSet::new(), Vec::new());
        Aggregate { run, steps, open, last_seq, retries, retry_ms, asked_ms, handlers }
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
            EventKind::StepStarted { step, position, attempt, timeout_at, policy } => {
                let state = StepState::Running { since: at, timeout_at: *timeout_at, policy: policy.clone() };
                self.put(at, (step, *position), attempt.saturating_sub(1), state);
            }
            EventKind::StepCompleted { step, position, attempt, .. } => {
                self.put(at, (step, *position), *attempt, StepState::Completed);
            }
            EventKind::StepFailed { step, position, attempt, failure, retry_at, finality, .. } => {
                let failure = failure.clone();
                let state = match retry_at {
                    Some(due) => {
                        self.retries = self.retries.saturating_add(1);
                        let asked = failure.retry_after_ms.is_some();
                        let waited = if asked { &mut self.asked_ms } else { &mut self.retry_ms };
                        *waited = waited.saturating_add(due.remaining_ms(at));
                        StepState::Retry { at: *due, failure }
                    }
                    None => StepState::Failed { failure, finality: finality.unwrap_or(Finality::Exhausted) },
                };
                self.put(at, (step, *position), *attempt, state);
            }
            EventKind::SleepScheduled { step, position, until } => {
                self.put(at, (step, *position), 0, StepState::Sleeping { until: *until });
            }
            EventKind::SleepOver { step } => self.wake(step),
            EventKind::LabelSet { step, position, .. } => {
                self.put(at, (step, *position), 1, StepState::Completed);
            }
            EventKind::RunClaimed { slept, .. } => {
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
                    let failure = Failure::new("WORKER_LOST", "its worker was lost");
                    step.state = StepState::Retry { at, failure };
                    true
                });
                slept.iter().for_each(|step| self.wake(step));
            }
            EventKind::RunResumed => self.retry_now(at),
            EventKind::RunRetried { .. } | EventKind::RunReopened => {
                self.retry_now(at);
                self.forgive(at);
            }
            EventKind::HandlerStarted { handler, .. } => self.handlers.push(*handler),
            EventKind::RunStarted
            | EventKind::StepProgressed { .. }
            | EventKind::RunParked { .. }
            | EventKind::RunReleased { .. }
            | EventKind::LeaseLost { .. }
            | EventKind::RunPaused { .. }
            | EventKind::RunCompleted
            | EventKind::RunFailed { .. }
            | EventKind::RunCancelled { .. }
            | EventKind::RunTimedOut { .. }
            | EventKind::HandlerEnded { .. } => {}
        }
    }

    /// The step that lets the run go on first, and when.
    pub fn earliest_due(&self) -> Option<(&Step, Timestamp)> {
        self.open_steps()
            .filter_map(|step| step.due_at().map(|at| (step, at)))
            .min_by(|(a, a_at), (b, b_at)| (a_at, &a.path).cmp(&(b_at, &b.path)))
    }

    /// The steps that run, sleep or wait for a retry, in no order.
    pub fn open_steps(&self) -> impl Iterator<Item = &Step> {
        self.open.iter().map(|path| &self.steps[path])
    }

    fn put(&mut self, at: Timestamp, (path, position): (&Name, u32), attempts: u32, state: StepState) {
        let known = self.steps.get(path);
        let since = known.map_or(at, |known| known.since);
        let forgiven = known.map_or(0, |known| known.forgiven);
        let was_open = known.is_some_and(|known| known.state.is_open());
        match (was_open, state.is_open()) {
            (false, true) => drop(self.open.insert(path.clone())),
            (true, false) => drop(self.open.remove(path)),
            (false, false) | (true, true) => {}
        }
        let step = Step { path: path.clone(), position, attempts, forgiven, since, state };
        self.steps.insert(path.clone(), step);
    }

    fn wake(&mut self, path: &Name) {
        if let Some(step) = self.steps.get_mut(path) {
            step.state = StepState::Slept;
            self.open.remove(path);
        }
    }

    /// Somebody said "now": whatever waits for its retry may begin at once.
    fn retry_now(&mut self, now: Timestamp) {
        for path in &self.open {
            if let Some(Step { state: StepState::Retry { at, .. }, .. }) = self.steps.get_mut(path) {
                *at = (*at).min(now);
            }
        }
    }

    /// Failed steps get a fresh set of attempts, and so do the run-wide limits.
    fn forgive(&mut self, now: Timestamp) {
        (self.retries, self.retry_ms, self.asked_ms) = (0, 0, 0);
        for step in self.steps.values_mut() {
            if let StepState::Failed { failure, .. } = &step.state {
                let failure = failure.clone();
                step.forgiven = step.attempts;
                step.since = now;
                step.state = StepState::Retry { at: now, failure };
                self.open.insert(step.path.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, Payload, RunOptions, StartRun, decide};

    fn started() -> Run {
        let id = RunId(uuid::Uuid::from_u128(1));
        let start = Command::Start(Box::new(StartRun {
            namespace: "shop".into(),
            id,
            business_id: id.to_string().into(),
            workflow_type: "watch".into(),
            task_queue: "orders".into(),
            input: Payload::new(&b"{}"[..]),
            deadline_at: None,
            options: RunOptions::default(),
            labels: Default::default(),
        }));
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
