//! Reopen: an operator lets an ended run go on from its failed step.
//!
//! The only way out of a terminal state, taken only by an explicit command of a person, and recorded.

use crate::{Aggregate, Change, EventKind, Name, Rejection, Reply, Run, State, Status, Timestamp};

/// Makes the run ready again: what is recorded stays, and only what failed the run gets a fresh set of attempts. With
/// `from` an earlier failure is forgiven too, as long as nothing but failures came after it. A request that was carried
/// out before is answered with where the run stands.
pub fn decide(
    now: Timestamp,
    seen: &Aggregate,
    from: Option<&Name>,
    request: Option<&Name>,
) -> Result<Change, Rejection> {
    let run = &seen.run;
    if seen.was_requested(request) {
        return Ok(Change::nothing(Reply::Stands { status: run.state.status(), already: true }));
    }
    match &run.state {
        State::Failed { .. } | State::TimedOut { .. } | State::Cancelled { .. } => {
            let forgives = seen.forgivable(from.or(seen.failed_by.as_ref()));
            if let Some(from) = from
                && !forgives.contains(from)
            {
                return Err(Rejection::NotForgivable { run: run.id, step: from.clone() });
            }
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
            let event = EventKind::RunReopened { forgives, request: request.cloned() };
            Ok(Change::new(reopened, event, reply))
        }
        State::Ready { .. }
        | State::Leased(_)
        | State::Timer { .. }
        | State::Retry { .. }
        | State::Paused { .. }
        | State::Completed => Err(Rejection::NotReopenable { run: run.id, status: run.state.status() }),
    }
}
