//! BeginStep: must this step run?

use super::guard;
use crate::{
    Aggregate, BeginAnswer, Change, EventKind, LeaseRef, Rejection, Reply, StepRef, StepState, Timestamp,
};

/// Answers from the record, or notes that an attempt begins.
pub fn decide(
    now: Timestamp,
    seen: &Aggregate,
    lease: &LeaseRef,
    step: &StepRef,
) -> Result<Change, Rejection> {
    guard::held(seen, lease)?;
    guard::same_position(seen, step)?;
    guard::room_for_step(seen, step)?;
    let known = seen.steps.get(&step.path);
    let attempt = known.map_or(0, |known| known.attempts).saturating_add(1);
    let answer = |answer| Ok(Change::nothing(Reply::Begin(answer)));
    match known.map(|known| &known.state) {
        Some(StepState::Completed | StepState::Slept) => answer(BeginAnswer::Recorded),
        Some(StepState::Failed { failure }) => answer(BeginAnswer::Failed { failure: failure.clone() }),
        Some(StepState::Retry { at, .. } | StepState::Sleeping { until: at }) if *at > now => {
            answer(BeginAnswer::NotReady { at: *at })
        }
        Some(StepState::Running { .. }) => answer(BeginAnswer::Execute { attempt }),
        Some(StepState::Retry { .. } | StepState::Sleeping { .. }) | None => {
            let event = EventKind::StepStarted { step: step.path.clone(), position: step.position, attempt };
            Ok(Change::event(event, None, Reply::Begin(BeginAnswer::Execute { attempt })))
        }
    }
}
