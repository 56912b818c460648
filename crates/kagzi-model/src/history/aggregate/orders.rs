//! What an order of a person changes in a run: which failures it forgives, and which requests are known.

use super::Aggregate;
use crate::{Name, Step, StepEnd, StepState, Timestamp, Wait, limits::REQUESTS_KEPT};

impl Aggregate {
    /// An operator's word: the count of idle parks begins anew.
    pub(super) fn heed(&mut self, request: Option<&Name>) {
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

    /// Somebody said "now": whatever waits for its retry may begin at once.
    pub(super) fn retry_now(&mut self, now: Timestamp) {
        for path in &self.open {
            if let Some(Step { state: StepState::Waiting(wait), .. }) = self.steps.get_mut(path) {
                wait.hurry(now);
            }
        }
    }

    /// The named steps get a fresh set of attempts, and so do the run-wide limits. What was begun only
    /// because they had failed, and has not ended, is forgotten: the code may never come by there again.
    pub(super) fn forgive(&mut self, now: Timestamp, forgives: &[Name]) {
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
