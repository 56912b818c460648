//! FailStep: a failed attempt, and what follows it.

use super::{lease_guard, park};
use crate::{
    Aggregate, Attempted, Change, Ends, EventKind, FailedAttempt, Failure, Lease, Millis, Rejection,
    RetryPolicy, Rule, StepEnd, StepRef, StepState, Timestamp, Verdict, Wait, backoff::seed,
};

/// Records a failed attempt and decides on the next; with `park` the lease ends when there is one.
#[derive(Debug, Clone, PartialEq)]
pub struct FailStep {
    pub step: StepRef,
    pub attempt: u32,
    pub failure: Failure,
    pub policy: RetryPolicy,
    pub elapsed_ms: Millis,
    pub park: bool,
}

impl Rule for FailStep {
    type Sender = Lease;
    type Reply = Attempted;

    /// The answer was lost and the worker sent the failure again.
    fn repeat(&self, now: Timestamp, seen: &Aggregate) -> Option<Attempted> {
        let attempt = self.attempt;
        let known = seen.steps.get(&self.step.path).filter(|known| known.attempts >= attempt.max(1))?;
        match &known.state {
            StepState::Waiting(Wait::Retry { at, .. }) => {
                Some(Attempted::Retry { at: *at, attempt: known.attempts })
            }
            StepState::Done(StepEnd::Failed { finality, .. }) => {
                Some(Attempted::Final { attempts: known.attempts, finality: *finality })
            }
            // A later attempt is running, so this one was granted a retry.
            StepState::Running { .. } if attempt > 0 => Some(Attempted::Retry { at: now, attempt }),
            StepState::Running { .. } | StepState::Waiting(_) => None,
            StepState::Done(StepEnd::Recorded | StepEnd::Elapsed | StepEnd::Labelled) => None,
        }
    }

    /// Records the failure and decides on the next attempt.
    fn decide(&self, now: Timestamp, seen: &Aggregate, _: &Lease) -> Result<Change<Attempted>, Rejection> {
        let FailStep { step, failure, policy, elapsed_ms, park, .. } = self;
        // A worker that began the step by a call has said its policy there, and need not say it again.
        let begun = match lease_guard::known_or_new_step(seen, step)?.map(|known| &known.state) {
            Some(StepState::Running { policy, .. }) => Some(policy),
            Some(StepState::Waiting(Wait::Retry { .. })) | None => None,
            Some(StepState::Done(_) | StepState::Waiting(_)) => {
                return Err(Rejection::StepDecided { step: step.path.clone() });
            }
        };
        let policy = &begun.map_or_else(|| policy.clone(), |begun| policy.or(begun));
        let (event, reply) = judge(now, seen, step, (failure, *elapsed_ms), policy);
        // A failed attempt is progress too: the worker lived to tell.
        let retried = matches!(reply, Attempted::Retry { .. });
        let change = Change { run: lease_guard::progressed(seen), ..Change::event(event, None, reply) };
        Ok(if *park && retried { park::after_events(now, seen, change) } else { change })
    }

    fn ends(&self) -> Ends<'_> {
        Ends::Step(&self.step.path)
    }
}

/// What follows a failed attempt, whoever reports it: step policy over run policy over the defaults.
pub fn judge(
    now: Timestamp,
    seen: &Aggregate,
    step: &StepRef,
    (failure, elapsed_ms): (&Failure, Millis),
    policy: &RetryPolicy,
) -> (EventKind, Attempted) {
    let known = seen.steps.get(&step.path);
    let attempt = known.map_or(0, |known| known.attempts).saturating_add(1);
    let failed = FailedAttempt {
        attempt: attempt - known.map_or(0, |known| known.attempts_before_reset),
        failure,
        seed: seed(&[seen.run.id.0.as_bytes(), step.path.as_bytes()]),
        elapsed_ms: known.map_or(0, |known| now.remaining_ms(known.since)),
        run_retries: seen.retries,
        run_retry_ms: seen.retry_ms,
        run_asked_ms: seen.retry_after_ms_total,
    };
    let (retry_at, finality, reply) = match policy.or(&seen.run.options.retry).verdict(&failed) {
        Verdict::RetryAfter { delay_ms } => {
            let at = now.plus_ms(delay_ms);
            (Some(at), None, Attempted::Retry { at, attempt })
        }
        Verdict::Final(finality) => (None, Some(finality), Attempted::Final { attempts: attempt, finality }),
    };
    let event = EventKind::StepFailed {
        step: step.path.clone(),
        position: step.position,
        attempt,
        failure: failure.clone(),
        retry_at,
        finality,
        elapsed_ms: elapsed_ms.max(0),
    };
    (event, reply)
}
