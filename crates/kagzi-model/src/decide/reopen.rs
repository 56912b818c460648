//! Reopen: an operator lets an ended run go on from its failed step.
//!
//! The only way out of a terminal state, taken only by an explicit command of a person, and recorded.

use crate::{Aggregate, Change, EventKind, Rejection, Reply, Run, State, Status, Timestamp};

/// Makes the run ready again: recorded steps stay, failed ones get a fresh set of attempts.
pub fn decide(now: Timestamp, seen: &Aggregate) -> Result<Change, Rejection> {
    let run = &seen.run;
    match &run.state {
        State::Failed { .. } | State::TimedOut { .. } | State::Cancelled { .. } => {
            let reopened = Run {
                state: State::Ready { since: now },
                crashes: 0,
                attempts: 0,
                finished_at: None,
                // A deadline that passed would end it again at once; the operator has overruled it.
                deadline_at: run.deadline_at.filter(|at| *at > now),
                ..run.clone()
            };
            let reply = Reply::Stands { status: Status::Pending, already: false };
            Ok(Change::new(reopened, EventKind::RunReopened, reply))
        }
        State::Ready { .. }
        | State::Leased(_)
        | State::Timer { .. }
        | State::Retry { .. }
        | State::Paused { .. }
        | State::Completed => Err(Rejection::NotReopenable { run: run.id, status: run.state.status() }),
    }
}
