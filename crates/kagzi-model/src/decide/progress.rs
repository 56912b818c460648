//! Progress: a long step says how far it is.

use super::guard;
use crate::{
    Aggregate, Change, EventKind, LeaseRef, Payload, Rejection, Reply, StepRef, StepState,
    limits::PROGRESS_EVENTS_MAX,
};

/// Keeps what the next attempt may read, should there be one.
pub fn decide(
    seen: &Aggregate,
    lease: &LeaseRef,
    step: &StepRef,
    progress: &Payload,
) -> Result<Change, Rejection> {
    guard::held(seen, lease)?;
    guard::same_position(seen, step)?;
    guard::room_for_step(seen, step)?;
    let known = seen.steps.get(&step.path);
    match known.map(|known| &known.state) {
        Some(
            StepState::Completed | StepState::Failed { .. } | StepState::Slept | StepState::Sleeping { .. },
        ) => Err(Rejection::StepDecided { step: step.path.clone() }),
        // The next attempt then begins where an earlier word said. That is late, but the run can still be loaded.
        Some(StepState::Running { .. } | StepState::Retry { .. }) | None
            if seen.last_seq >= PROGRESS_EVENTS_MAX =>
        {
            Ok(Change::nothing(Reply::Done { already: true }))
        }
        Some(StepState::Running { .. } | StepState::Retry { .. }) | None => {
            let attempt = known.map_or(0, |known| known.attempts).saturating_add(1);
            let (path, position) = (step.path.clone(), step.position);
            let event = EventKind::StepProgressed { step: path, position, attempt };
            Ok(Change::event(event, Some(progress.clone()), Reply::Done { already: false }))
        }
    }
}
