//! CloseStep: the code dropped a step while an attempt ran.

use super::guard;
use crate::{Aggregate, Change, EventKind, LeaseRef, Rejection, Reply, StepRef, StepState};

/// Notes it only where the record knows of the attempt: else there is nothing that could time out.
pub fn decide(seen: &Aggregate, lease: &LeaseRef, step: &StepRef) -> Result<Change, Rejection> {
    guard::held(seen, lease)?;
    guard::same_position(seen, step)?;
    match seen.steps.get(&step.path) {
        Some(known) if !known.closed && matches!(known.state, StepState::Running { .. }) => {
            let attempt = known.attempts.saturating_add(1);
            let event = EventKind::StepClosed { step: step.path.clone(), position: step.position, attempt };
            Ok(Change::event(event, None, Reply::Done { already: false }))
        }
        Some(_) | None => Ok(Change::nothing(Reply::Done { already: true })),
    }
}
