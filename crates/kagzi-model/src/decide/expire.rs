//! Expire: time alone ends something.

use super::orphan;
use crate::{Aggregate, Change, EventKind, Failure, Rejection, Reply, Run, State, Timestamp};

/// The deadline ends the run from any state; a lease that ran out is taken back.
pub fn decide(now: Timestamp, seen: &Aggregate) -> Result<Change, Rejection> {
    let run = &seen.run;
    if run.state.finished() {
        return Ok(Change::nothing(Reply::Done { already: true }));
    }
    if run.deadline_at.is_some_and(|deadline| deadline <= now) {
        let failure = Failure::new("TIMED_OUT", "the run did not finish before its deadline").non_retryable();
        let state = State::TimedOut { failure: failure.clone() };
        let run = Run { state, finished_at: Some(now), ..run.clone() };
        return Ok(Change::new(run, EventKind::RunTimedOut { failure }, Reply::Done { already: false }));
    }
    match run.lease() {
        Some(lease) if lease.until <= now => Ok(orphan::take_back(now, seen, lease)),
        Some(_) | None => Ok(Change::nothing(Reply::Done { already: true })),
    }
}
