//! FailStep: a failed attempt, and what follows it.

use super::{guard, park};
use crate::{
    Aggregate, Change, EventKind, FailedAttempt, Failure, LeaseRef, Millis, Rejection, Reply, RetryPolicy,
    StepRef, StepState, Timestamp, Verdict, backoff::seed,
};

/// A failed attempt as its worker reports it.
pub struct Failed<'a> {
    pub step: &'a StepRef,
    pub attempt: u32,
    pub failure: &'a Failure,
    pub policy: &'a RetryPolicy,
    pub elapsed_ms: Millis,
    pub park: bool,
}

/// Records the failure and decides on the next attempt; with `park` the lease ends when there is one.
pub fn decide(
    now: Timestamp,
    seen: &Aggregate,
    lease: &LeaseRef,
    failed: Failed<'_>,
) -> Result<Change, Rejection> {
    let Failed { step, attempt, failure, policy, elapsed_ms, park } = failed;
    let known = seen.steps.get(&step.path);
    if let Some(known) = known
        && seen.run.epoch == lease.epoch
        && known.attempts >= attempt.max(1)
    {
        // The answer was lost and the worker sent the failure again.
        match &known.state {
            StepState::Retry { at, .. } => {
                return Ok(Change::nothing(Reply::StepRetry { at: *at, attempt: known.attempts }));
            }
            StepState::Failed { finality, .. } => {
                let (attempts, finality) = (known.attempts, *finality);
                return Ok(Change::nothing(Reply::StepFinal { attempts, finality }));
            }
            // A later attempt is running, so this one was granted a retry.
            StepState::Running { .. } if attempt > 0 => {
                return Ok(Change::nothing(Reply::StepRetry { at: now, attempt }));
            }
            StepState::Running { .. } | StepState::Completed => {}
            StepState::Sleeping { .. } | StepState::Slept => {}
        }
    }
    guard::held(seen, lease)?;
    guard::same_position(seen, step)?;
    guard::room_for_step(seen, step)?;
    match known.map(|known| &known.state) {
        Some(
            StepState::Completed | StepState::Failed { .. } | StepState::Slept | StepState::Sleeping { .. },
        ) => {
            return Err(Rejection::StepDecided { step: step.path.clone() });
        }
        Some(StepState::Running { .. } | StepState::Retry { .. }) | None => {}
    }
    // A worker that began the step by a call has said its policy there, and need not say it again.
    let begun = match known.map(|known| &known.state) {
        Some(StepState::Running { policy, .. }) => Some(policy),
        Some(StepState::Retry { .. } | StepState::Completed | StepState::Failed { .. }) => None,
        Some(StepState::Sleeping { .. } | StepState::Slept) | None => None,
    };
    let policy = &begun.map_or_else(|| policy.clone(), |begun| policy.or(begun));
    let (event, reply) = judge(now, seen, step, (failure, elapsed_ms), policy);
    // A failed attempt is progress too: the worker lived to tell.
    let retried = matches!(reply, Reply::StepRetry { .. });
    let change = Change { run: guard::progressed(seen), ..Change::event(event, None, reply) };
    if park && retried { park::after(now, seen, change) } else { Ok(change) }
}

/// What follows a failed attempt, whoever reports it: step policy over run policy over the defaults.
pub fn judge(
    now: Timestamp,
    seen: &Aggregate,
    step: &StepRef,
    (failure, elapsed_ms): (&Failure, Millis),
    policy: &RetryPolicy,
) -> (EventKind, Reply) {
    let known = seen.steps.get(&step.path);
    let attempt = known.map_or(0, |known| known.attempts).saturating_add(1);
    let failed = FailedAttempt {
        attempt: attempt - known.map_or(0, |known| known.forgiven),
        failure,
        seed: seed(&[seen.run.id.0.as_bytes(), step.path.as_bytes()]),
        elapsed_ms: known.map_or(0, |known| now.remaining_ms(known.since)),
        run_retries: seen.retries,
        run_retry_ms: seen.retry_ms,
        run_asked_ms: seen.asked_ms,
    };
    let (retry_at, finality, reply) = match policy.or(&seen.run.options.retry).verdict(&failed) {
        Verdict::RetryAfter { delay_ms } => {
            let at = now.plus_ms(delay_ms);
            (Some(at), None, Reply::StepRetry { at, attempt })
        }
        Verdict::Final(finality) => (None, Some(finality), Reply::StepFinal { attempts: attempt, finality }),
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
