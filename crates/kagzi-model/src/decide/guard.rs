//! The fence: who may write.

use crate::{Aggregate, Lease, LeaseRef, Rejection, Run, StepRef, limits::STEPS_PER_RUN_MAX};

/// The lease that `named` claims to hold, or why it does not. Epochs decide, never clocks: a lease that ran out
/// but was not taken over yet is still good.
pub fn held<'a>(seen: &'a Aggregate, named: &LeaseRef) -> Result<&'a Lease, Rejection> {
    let run = &seen.run;
    if run.state.finished() {
        return Err(Rejection::Ended { run: run.id, status: run.state.status() });
    }
    if run.epoch != named.epoch {
        return Err(Rejection::StaleEpoch { run: run.id, named: named.epoch, current: run.epoch });
    }
    run.lease().ok_or(Rejection::NotLeased { run: run.id, status: run.state.status() })
}

/// Whether `named` was the last lease of a run that has it no more: then a command may be a repeat.
pub fn was_last(seen: &Aggregate, named: &LeaseRef) -> bool {
    seen.run.epoch == named.epoch && seen.run.lease().is_none()
}

/// Refuses a step whose path was recorded at another position: the code was reordered.
pub fn same_position(seen: &Aggregate, step: &StepRef) -> Result<(), Rejection> {
    if let Some(known) = seen.steps.get(&step.path)
        && known.position != step.position
    {
        let recorded = format!("{} at position {}", known.path, known.position);
        return Err(Rejection::StepMismatch {
            recorded: recorded.into(),
            got: step.path.clone(),
            position: step.position,
        });
    }
    Ok(())
}

/// The row to write because a worker made progress: only when earlier crashes must be forgotten.
pub fn progressed(seen: &Aggregate) -> Option<Run> {
    (seen.run.crashes > 0).then(|| Run { crashes: 0, ..seen.run.clone() })
}

/// Refuses the step that would be one too many.
pub fn room_for_step(seen: &Aggregate, step: &StepRef) -> Result<(), Rejection> {
    let count = seen.steps.len();
    if count >= STEPS_PER_RUN_MAX && !seen.steps.contains_key(&step.path) {
        return Err(Rejection::TooManySteps { run: seen.run.id, count, max: STEPS_PER_RUN_MAX });
    }
    Ok(())
}
