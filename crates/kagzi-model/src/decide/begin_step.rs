//! BeginStep: must this step run?

use super::lease_guard;
use crate::{
    Aggregate, Begin, Change, EventKind, Lease, Millis, Rejection, RetryPolicy, Rule, Run, State, StepEnd,
    StepRef, StepState, Timestamp, Wait,
};

/// Asks whether a step must run, and notes that it begins.
#[derive(Debug, Clone, PartialEq)]
pub struct BeginStep {
    pub step: StepRef,
    /// How long the attempt may take, where its caller said so.
    pub timeout_ms: Option<Millis>,
    /// How long it may take where neither its caller nor the run says so. Without it only the caller's word
    /// counts.
    pub standard_ms: Option<Millis>,
    pub policy: RetryPolicy,
}

impl Rule for BeginStep {
    type Sender = Lease;
    type Reply = Begin;

    /// Answers from the record, or notes that an attempt begins and when the server ends it.
    fn decide(&self, now: Timestamp, seen: &Aggregate, held: &Lease) -> Result<Change<Begin>, Rejection> {
        let BeginStep { step, policy, .. } = self;
        let timeout_ms = self.limit_ms(seen);
        let known = lease_guard::known_or_new_step(seen, step)?;
        let attempt = known.map_or(0, |known| known.attempts).saturating_add(1);
        let answer = |answer| Ok(Change::nothing(answer));
        match known.map(|known| &known.state) {
            Some(StepState::Done(StepEnd::Recorded | StepEnd::Elapsed | StepEnd::Labelled)) => {
                answer(Begin::Recorded)
            }
            Some(StepState::Done(StepEnd::Failed { failure, finality })) => answer(Begin::Failed {
                failure: failure.clone(),
                attempts: known.map_or(0, |known| known.attempts),
                finality: *finality,
            }),
            Some(StepState::Waiting(Wait::Retry { at, .. } | Wait::Timer { until: at })) if *at > now => {
                answer(Begin::NotReady { at: *at })
            }
            Some(StepState::Waiting(Wait::Timer { .. })) => answer(Begin::Recorded),
            Some(StepState::Waiting(Wait::Signal { .. } | Wait::Child { .. } | Wait::Person { .. })) => {
                Err(Rejection::StepDecided { step: step.path.clone() })
            }
            Some(StepState::Running { .. }) => answer(Begin::Execute { attempt, timeout_ms }),
            Some(StepState::Waiting(Wait::Retry { .. })) | None => {
                let timeout_at = timeout_ms.map(|ms| now.plus_ms(ms));
                let (path, position, policy) = (step.path.clone(), step.position, policy.clone());
                let event = EventKind::StepStarted { step: path, position, attempt, timeout_at, policy };
                let mut change = Change::event(event, None, Begin::Execute { attempt, timeout_ms });
                let earlier = [held.step_timeout_at, timeout_at].into_iter().flatten().min();
                if earlier != held.step_timeout_at {
                    let lease = Lease { step_timeout_at: earlier, ..held.clone() };
                    change.run = Some(Run { state: State::Leased(lease), ..seen.run.clone() });
                }
                Ok(change)
            }
        }
    }
}

impl BeginStep {
    /// The caller's limit, else the run's, else the standard.
    fn limit_ms(&self, seen: &Aggregate) -> Option<Millis> {
        let of_run = |standard_ms| seen.run.options.timeouts.start_to_close_ms.unwrap_or(standard_ms);
        self.timeout_ms.or_else(|| self.standard_ms.map(of_run))
    }
}
