//! FailStep: a failed attempt, and what follows it.

use super::{guard, park};
use crate::{
    Aggregate, Change, EventKind, Failure, LeaseRef, Rejection, Reply, RetryPolicy, Run, StepRef, StepState,
    Timestamp, Verdict,
};

/// A failed attempt as its worker reports it.
pub struct Failed<'a> {
    pub step: &'a StepRef,
    pub attempt: u32,
    pub failure: &'a Failure,
    pub policy: &'a RetryPolicy,
    pub park: bool,
}

/// Applies step policy over run policy over the server's default.
pub fn decide(
    now: Timestamp,
    seen: &Aggregate,
    lease: &LeaseRef,
    failed: Failed<'_>,
) -> Result<Change, Rejection> {
    let Failed { step, attempt, failure, policy, park } = failed;
    let known = seen.steps.get(&step.path);
    if let Some(known) = known
        && seen.run.epoch == lease.epoch
        && known.attempts >= attempt.max(1)
    {
        match &known.state {
            StepState::Retry { at, .. } => {
                return Ok(Change::nothing(Reply::StepRetry { at: *at, attempt: known.attempts }));
            }
            StepState::Failed { .. } => {
                return Ok(Change::nothing(Reply::StepFinal { attempts: known.attempts }));
            }
            StepState::Running { .. }
            | StepState::Completed
            | StepState::Sleeping { .. }
            | StepState::Slept => {}
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
    let attempt = known.map_or(0, |known| known.attempts).saturating_add(1);
    let verdict = policy.or(&seen.run.options.retry).verdict(attempt, failure);
    let retry_at = match verdict {
        Verdict::RetryAfter { delay_ms } => Some(now.plus_ms(delay_ms)),
        Verdict::Final => None,
    };
    let event = EventKind::StepFailed {
        step: step.path.clone(),
        position: step.position,
        attempt,
        failure: failure.clone(),
        retry_at,
    };
    let reply = match retry_at {
        Some(at) => Reply::StepRetry { at, attempt },
        None => Reply::StepFinal { attempts: attempt },
    };
    // A failed attempt is progress too: the worker lived to tell.
    let run = Run { crashes: 0, ..seen.run.clone() };
    let change = Change::new(run, event, reply);
    if park && retry_at.is_some() { park::after(now, seen, change) } else { Ok(change) }
}
