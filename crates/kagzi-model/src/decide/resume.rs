//! Resume: a person says "go on now".

use crate::{Aggregate, Change, EventKind, Name, Rejection, Reply, Run, State, Status, Timestamp};

/// Makes a paused or retrying run ready; a sleep is never cut short. A request that was carried out before is answered
/// with where the run stands: its first answer may have been lost.
pub fn decide(now: Timestamp, seen: &Aggregate, request: Option<&Name>) -> Result<Change, Rejection> {
    let run = &seen.run;
    if seen.was_requested(request) {
        return Ok(Change::nothing(Reply::Stands { status: run.state.status(), already: true }));
    }
    match &run.state {
        State::Paused { .. } | State::Retry { .. } => {
            let run = Run { state: State::Ready { since: now }, crashes: 0, ..run.clone() };
            let reply = Reply::Stands { status: Status::Pending, already: false };
            Ok(Change::new(run, EventKind::RunResumed { request: request.cloned() }, reply))
        }
        State::Ready { .. } => Ok(Change::nothing(Reply::Stands { status: Status::Pending, already: true })),
        State::Leased(_) | State::Timer { .. } => {
            Err(Rejection::NotResumable { run: run.id, status: run.state.status() })
        }
        State::Completed | State::Failed { .. } | State::Cancelled { .. } | State::TimedOut { .. } => {
            Err(Rejection::Ended { run: run.id, status: run.state.status() })
        }
    }
}
