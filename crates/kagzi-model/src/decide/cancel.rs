//! Cancel: somebody asked for the end.

use super::ending;
use crate::{Aggregate, Change, EventKind, Rejection, Reply, Run, State, Status, Timestamp};

/// Ends the run at once, whatever it waits for; its worker's next write is refused.
pub fn decide(now: Timestamp, seen: &Aggregate, reason: &str) -> Result<Change, Rejection> {
    let run = &seen.run;
    let status = Status::Cancelled;
    if run.state.status() == status {
        return Ok(Change::nothing(Reply::Stands { status, already: true }));
    }
    if run.state.finished() {
        return Err(Rejection::Ended { run: run.id, status: run.state.status() });
    }
    let reason = reason.to_owned();
    let state = State::Cancelled { reason: reason.clone() };
    let run = Run { state, finished_at: Some(now), ..run.clone() };
    let follow = ending::note(&run).into_iter().collect();
    let change =
        Change::new(run, EventKind::RunCancelled { reason }, Reply::Stands { status, already: false });
    Ok(Change { follow, ..change })
}
