//! Fail: the function returned an error.

use super::{
    ending::{self, Ending},
    guard,
};
use crate::{
    Aggregate, Change, EventKind, FailedAttempt, Failure, LeaseRef, Name, Rejection, Reply, Run, State,
    Timestamp, Verdict, backoff::seed,
};

/// Ends the run as FAILED, or executes it again where it asked for that. A repeat by the same lease is told
/// what was decided.
pub fn decide(
    now: Timestamp,
    seen: &Aggregate,
    lease: &LeaseRef,
    (failure, step): (&Failure, Option<&Name>),
) -> Result<Change, Rejection> {
    if guard::was_last(seen, lease) {
        match &seen.run.state {
            State::Failed { .. } => return Ok(Change::nothing(Reply::RunFailed { retry_at: None })),
            State::Retry { step: None, at, .. } => {
                return Ok(Change::nothing(Reply::RunFailed { retry_at: Some(*at) }));
            }
            State::Ready { .. } | State::Leased(_) | State::Timer { .. } | State::Retry { .. } => {}
            State::Paused { .. } | State::Completed | State::Cancelled { .. } | State::TimedOut { .. } => {}
        }
    }
    guard::held(seen, lease)?;
    // A name that means nothing here is not a reason to keep a failed run alive.
    let step = step.filter(|step| seen.failed_for_good(step));
    if let Some(retry_at) = retry_at(now, seen, failure) {
        return Ok(retry(seen, (failure, step), retry_at));
    }
    let mut change =
        ending::end(now, seen, Ending::Failed, failure.clone(), Reply::RunFailed { retry_at: None });
    if let Some((EventKind::RunFailed { step: named, .. }, _)) = change.events.first_mut() {
        *named = step.cloned();
    }
    Ok(change)
}

/// When the whole run is executed again: only where it asked for run-level retries.
fn retry_at(now: Timestamp, seen: &Aggregate, failure: &Failure) -> Option<Timestamp> {
    let run = &seen.run;
    let policy = run.options.run_retry.as_ref()?;
    let failed = FailedAttempt {
        attempt: run.attempts.saturating_add(1),
        failure,
        seed: seed(&[run.id.0.as_bytes()]),
        elapsed_ms: run.started_at.map_or(0, |at| now.remaining_ms(at)),
        run_retries: 0,
        run_retry_ms: 0,
        run_asked_ms: 0,
    };
    match policy.verdict(&failed) {
        Verdict::RetryAfter { delay_ms } => Some(now.plus_ms(delay_ms)),
        Verdict::Final(_) => None,
    }
}

/// Executes again only what failed the run: what the function has gone past is history.
fn retry(seen: &Aggregate, (failure, step): (&Failure, Option<&Name>), at: Timestamp) -> Change {
    let attempt = seen.run.attempts.saturating_add(1);
    let state = State::Retry { step: None, attempt, at, failure: failure.clone() };
    let run = Run { state, attempts: attempt, crashes: 0, ..seen.run.clone() };
    let forgives = seen.forgivable(step);
    let event = EventKind::RunRetried { attempt, failure: failure.clone(), at, forgives };
    Change::new(run, event, Reply::RunFailed { retry_at: Some(at) })
}
