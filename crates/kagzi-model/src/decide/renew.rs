//! Renew: a heartbeat named this run.

use super::guard;
use crate::{Aggregate, Change, Lease, LeaseRef, Rejection, Reply, Run, State, Timestamp};

/// Moves the lease's end to `until`, never adding up and never back.
pub fn decide(seen: &Aggregate, lease: &LeaseRef, until: Timestamp) -> Result<Change, Rejection> {
    let held = guard::held(seen, lease)?;
    if until <= held.until {
        return Ok(Change::nothing(Reply::Done { already: true }));
    }
    let state = State::Leased(Lease { until, ..held.clone() });
    let run = Run { state, ..seen.run.clone() };
    // No event: a renewal is not history, and there would be one every few seconds.
    Ok(Change { run: Some(run), events: vec![], reply: Reply::Done { already: false }, follow: vec![] })
}
