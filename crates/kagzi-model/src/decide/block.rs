//! Block: code and record disagree, so a person must look.

use super::guard;
use crate::{Aggregate, Change, EventKind, LeaseRef, Rejection, Reply, Run, State, Timestamp};

/// Pauses the run. Going on would run steps again or skip them.
pub fn decide(
    now: Timestamp,
    seen: &Aggregate,
    lease: &LeaseRef,
    message: &str,
) -> Result<Change, Rejection> {
    if matches!(seen.run.state, State::Paused { .. }) && seen.run.epoch == lease.epoch {
        return Ok(Change::nothing(Reply::Done { already: true }));
    }
    guard::held(seen, lease)?;
    let (by, why) = (crate::Name::from("replay"), message.to_owned());
    let state = State::Paused { by: by.clone(), why: why.clone(), since: now };
    let run = Run { state, ..seen.run.clone() };
    Ok(Change::new(run, EventKind::RunPaused { by, why }, Reply::Done { already: false }))
}
