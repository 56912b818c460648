//! The fence: who may write.

use crate::{Aggregate, Lease, Rejection, Run, Step, StepRef, limits::STEPS_PER_RUN_MAX};

/// The lease with this epoch, or why the run does not have it. Epochs decide, never clocks: a lease that ran
/// out but was not taken over yet is still good.
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

/// Whether the run has neither ended nor gone to anybody since its last lease ended: then a report that ends
/// a lease may be a repeat.
pub fn given_up(seen: &Aggregate) -> bool {
    seen.run.lease().is_none() && !seen.run.state.finished()
}

/// What the record has of the step. Refuses a path that was recorded at another position: the code was
/// reordered.
pub fn known_step<'a>(seen: &'a Aggregate, step: &StepRef) -> Result<Option<&'a Step>, Rejection> {
    let known = seen.steps.get(&step.path);
    match known {
        Some(known) if known.position != step.position => {
            let recorded = format!("{} at position {}", known.path, known.position);
            let (got, position) = (step.path.clone(), step.position);
            Err(Rejection::StepMismatch { recorded: recorded.into(), got, position })
        }
        Some(_) | None => Ok(known),
    }
}

/// The same for a step that may be new. Refuses the one that would be too many, and what lies in a scope
/// that was recorded as one: no replay would ever hear of it.
pub fn known_or_new_step<'a>(seen: &'a Aggregate, step: &StepRef) -> Result<Option<&'a Step>, Rejection> {
    let (known, count) = (known_step(seen, step)?, seen.steps.len());
    if known.is_none() && count >= STEPS_PER_RUN_MAX {
        return Err(Rejection::TooManySteps { run: seen.run.id, count, max: STEPS_PER_RUN_MAX });
    }
    if seen.is_in_recorded_scope(&step.path) {
        return Err(Rejection::StepDecided { step: step.path.clone() });
    }
    Ok(known)
}

/// The row to write because a worker made progress: only when earlier crashes must be forgotten.
pub fn progressed(seen: &Aggregate) -> Option<Run> {
    (seen.run.crashes > 0).then(|| Run { crashes: 0, ..seen.run.clone() })
}
