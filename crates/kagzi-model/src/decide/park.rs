//! Park: nothing can go on before the earliest retry or sleep, so the lease ends and the slot is free.

use super::guard;
use crate::{
    Aggregate, Change, EventKind, LeaseRef, Rejection, Reply, Run, State, Step, StepState, Timestamp,
};

/// Ends the lease; the run becomes due with its earliest step, at no charge.
pub fn decide(now: Timestamp, seen: &Aggregate, lease: &LeaseRef) -> Result<Change, Rejection> {
    if guard::was_last(seen, lease) && !seen.run.state.finished() {
        return Ok(Change::nothing(Reply::Done { already: true }));
    }
    guard::held(seen, lease)?;
    let (state, due_at) = waiting(now, seen);
    let run = Run { state, ..seen.run.clone() };
    Ok(Change::new(run, EventKind::RunParked { due_at }, Reply::Done { already: false }))
}

/// `change`, and then parked in the same commit.
pub fn after(now: Timestamp, seen: &Aggregate, change: Change) -> Result<Change, Rejection> {
    Ok(after_events(now, seen, change))
}

/// The same, where nothing can be refused.
pub fn after_events(now: Timestamp, seen: &Aggregate, mut change: Change) -> Change {
    let mut then = seen.clone();
    then.apply(now, &change);
    let (state, due_at) = waiting(now, &then);
    change.run = Some(Run { state, ..then.run });
    change.events.push((EventKind::RunParked { due_at }, None));
    change
}

/// `change`, and then ready for a worker at once: a step failed for good, and the function must hear of it.
pub fn ready_after(now: Timestamp, seen: &Aggregate, mut change: Change) -> Change {
    let run = change.run.take().unwrap_or_else(|| seen.run.clone());
    change.run = Some(Run { state: State::Ready { since: now }, ..run });
    change.events.push((EventKind::RunParked { due_at: now }, None));
    change
}

fn waiting(now: Timestamp, seen: &Aggregate) -> (State, Timestamp) {
    match seen.earliest_due() {
        Some((Step { path, attempts, state: StepState::Retry { failure, .. }, .. }, at)) => {
            let failure = failure.clone();
            (State::Retry { step: Some(path.clone()), attempt: *attempts, at, failure }, at)
        }
        Some((step, at)) => (State::Timer { step: step.path.clone(), at }, at),
        // Parked without anything to wait for: let a worker look again rather than wait for ever.
        None => (State::Ready { since: now }, now),
    }
}
