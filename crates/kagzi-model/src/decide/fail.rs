//! Fail: the function returned an error.

use super::{
    ending::{self, Ending},
    guard,
};
use crate::{
    Aggregate, Change, EventKind, FailedAttempt, Failure, LeaseRef, Rejection, Reply, Run, State, Timestamp,
    Verdict, backoff::seed,
};

/// Ends the run as FAILED, or executes it again where it asked for that. A repeat by the same lease is told
/// what was decided.
pub fn decide(
    now: Timestamp,
    seen: &Aggregate,
    lease: &LeaseRef,
    failure: &Failure,
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
    if let Some(retry_at) = retry_at(now, seen, failure) {
        return Ok(retry(seen, failure, retry_at));
    }
    Ok(ending::end(now, seen, Ending::Failed, failure.clone(), Reply::RunFailed { retry_at: None }))
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

fn retry(seen: &Aggregate, failure: &Failure, at: Timestamp) -> Change {
    let attempt = seen.run.attempts.saturating_add(1);
    let state = State::Retry { step: None, attempt, at, failure: failure.clone() };
    let run = Run { state, attempts: attempt, crashes: 0, ..seen.run.clone() };
    let event = EventKind::RunRetried { attempt, failure: failure.clone(), at };
    Change::new(run, event, Reply::RunFailed { retry_at: Some(at) })
}
