//! Terminate: an operator gives the run up. It counts as a failure, so its handler runs.

use super::ending::{self, Ending};
use crate::{Aggregate, Change, Failure, Rejection, Reply, State, Status, Timestamp, codes};

/// Ends the run at once, whatever it waits for.
pub fn decide(now: Timestamp, seen: &Aggregate, reason: &str) -> Result<Change, Rejection> {
    let run = &seen.run;
    let status = Status::Failed;
    if let State::Failed { failure } = &run.state
        && *failure.code == *codes::TERMINATED
    {
        return Ok(Change::nothing(Reply::Stands { status, already: true }));
    }
    if run.state.finished() {
        return Err(Rejection::Ended { run: run.id, status: run.state.status() });
    }
    let why = if reason.is_empty() { "terminated by an operator" } else { reason };
    let failure = Failure::new(codes::TERMINATED, why).non_retryable();
    Ok(ending::end(now, seen, Ending::Failed, failure, Reply::Stands { status, already: false }))
}
