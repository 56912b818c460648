//! The fence: who may write.

use crate::{Aggregate, Lease, Rejection, Run, StepRef, limits::STEPS_PER_RUN_MAX};

/// The lease with this epoch, or why the run does not have it. Epochs decide, never clocks: a lease that ran out but was
/// not taken over yet is still good.
pub fn held(seen: &Aggregate, epoch: u64) -> Result<&Lease, Rejection> {
    let run = &seen.run;
    if run.state.finished() {
        return Err(Rejection::Ended { run: run.id, status: run.state.status() });
    }
    if run.epoch != epoch {
        return Err(Rejection::StaleEpoch { run: run.id, named: epoch, current: run.epoch });
    }
    run.lease().ok_or(Rejection::NotLeased { run: run.id, status: run.state.status() })
}

/// Whether the run has neither ended nor gone to anybody since its last lease ended: then a report that ends a lease may
/// be a repeat.
pub fn given_up(seen: &Aggregate) -> bool {
    seen.run.lease().is_none() && !seen.run.state.finished()
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
