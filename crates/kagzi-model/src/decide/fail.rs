//! Fail: the run ends with an error.

use super::guard;
use crate::{Aggregate, Change, EventKind, Failure, LeaseRef, Rejection, Reply, Run, State, Timestamp};

/// Ends the run as FAILED; a repeat by the same lease is told that it is done.
pub fn decide(
    now: Timestamp,
    seen: &Aggregate,
    lease: &LeaseRef,
    failure: &Failure,
) -> Result<Change, Rejection> {
    if matches!(seen.run.state, State::Failed { .. }) && seen.run.epoch == lease.epoch {
        return Ok(Change::nothing(Reply::Done { already: true }));
    }
    guard::held(seen, lease)?;
    let failure = failure.clone();
    let run = Run {
        state: State::Failed { failure: failure.clone() },
        attempts: seen.run.attempts.saturating_add(1),
        finished_at: Some(now),
        ..seen.run.clone()
    };
    Ok(Change::new(run, EventKind::RunFailed { failure }, Reply::Done { already: false }))
}
