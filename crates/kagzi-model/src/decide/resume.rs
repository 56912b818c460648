//! Resume: a person says "go on now".

use crate::{Aggregate, Change, EventKind, Rejection, Reply, Run, State, Status, Timestamp};

/// Makes a paused or retrying run ready; a sleep is never cut short.
pub fn decide(now: Timestamp, seen: &Aggregate) -> Result<Change, Rejection> {
    let run = &seen.run;
    match &run.state {
        State::Paused { .. } | State::Retry { .. } => {
            let run = Run { state: State::Ready { since: now }, crashes: 0, ..run.clone() };
            let reply = Reply::Stands { status: Status::Pending, already: false };
            Ok(Change::new(run, EventKind::RunResumed, reply))
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
