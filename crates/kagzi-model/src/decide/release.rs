//! Release: the run is given back, and nobody is charged.

use super::guard;
use crate::{Aggregate, Change, EventKind, LeaseRef, Rejection, Reply, Run, State, Timestamp};

/// Makes the run ready again at once.
pub fn decide(now: Timestamp, seen: &Aggregate, lease: &LeaseRef, why: &str) -> Result<Change, Rejection> {
    if guard::was_last(seen, lease) && !seen.run.state.finished() {
        return Ok(Change::nothing(Reply::Done { already: true }));
    }
    guard::held(seen, lease)?;
    let run = Run { state: State::Ready { since: now }, ..seen.run.clone() };
    Ok(Change::new(run, EventKind::RunReleased { why: why.to_owned() }, Reply::Done { already: false }))
}
