//! Complete: the run ends with its output.

use super::{ending, guard};
use crate::{Aggregate, Change, EventKind, LeaseRef, Payload, Rejection, Reply, Run, State, Timestamp};

/// Ends the run once; a repeat by the same lease is told that it is done.
pub fn decide(
    now: Timestamp,
    seen: &Aggregate,
    lease: &LeaseRef,
    output: &Payload,
) -> Result<Change, Rejection> {
    if seen.run.state == State::Completed && seen.run.epoch == lease.epoch {
        return Ok(Change::nothing(Reply::Done { already: true }));
    }
    guard::held(seen, lease)?;
    let run = Run { state: State::Completed, finished_at: Some(now), ..seen.run.clone() };
    let follow = ending::note(&run).into_iter().collect();
    Ok(Change {
        run: Some(run),
        events: vec![(EventKind::RunCompleted, Some(output.clone()))],
        reply: Reply::Done { already: false },
        follow,
    })
}
