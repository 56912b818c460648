//! RecordStep: a result is recorded once.

use super::guard;
use crate::{Aggregate, Change, EventKind, LeaseRef, Millis, Payload, Rejection, Reply, StepRef, StepState};

/// Adds the result to the history; the row changes only when it must forget earlier crashes.
pub fn decide(
    seen: &Aggregate,
    lease: &LeaseRef,
    step: &StepRef,
    (attempt, elapsed_ms): (u32, Millis),
    result: &Payload,
) -> Result<Change, Rejection> {
    let known = seen.steps.get(&step.path);
    let recorded = known.is_some_and(|known| known.state == StepState::Completed);
    if recorded && seen.run.epoch == lease.epoch {
        // The answer was lost and the worker sent it again, perhaps after the run went on.
        guard::same_position(seen, step)?;
        return Ok(Change::nothing(Reply::Done { already: true }));
    }
    guard::held(seen, lease)?;
    guard::same_position(seen, step)?;
    guard::room_for_step(seen, step)?;
    match known.map(|known| &known.state) {
        Some(
            StepState::Completed | StepState::Failed { .. } | StepState::Slept | StepState::Sleeping { .. },
        ) => {
            return Err(Rejection::StepDecided { step: step.path.clone() });
        }
        Some(StepState::Running { .. } | StepState::Retry { .. }) | None => {}
    }
    // The record counts attempts itself; a worker's number below it is a slip, never a reset.
    let attempt = attempt.max(known.map_or(0, |known| known.attempts).saturating_add(1));
    let event = EventKind::StepCompleted {
        step: step.path.clone(),
        position: step.position,
        attempt,
        elapsed_ms: elapsed_ms.max(0),
    };
    let mut change = Change::event(event, Some(result.clone()), Reply::Done { already: false });
    change.run = guard::progressed(seen);
    Ok(change)
}
