//! RecordSteps: several results in one commit, in the order in which the function was told of them.

use std::collections::HashSet;

use super::{guard, record_step};
use crate::{Aggregate, Change, LeaseRef, Rejection, Reply, StepResult, limits::STEPS_PER_RUN_MAX};

/// All of them or none. A repeat writes what was not written before, which is nothing.
pub fn decide(seen: &Aggregate, lease: &LeaseRef, steps: &[StepResult]) -> Result<Change, Rejection> {
    let mut events = Vec::with_capacity(steps.len());
    for result in steps {
        let counted = (result.attempt, result.elapsed_ms);
        events.extend(record_step::decide(seen, lease, &result.step, counted, &result.result)?.events);
    }
    distinct(steps)?;
    let count = seen
        .steps
        .len()
        .saturating_add(steps.iter().filter(|new| !seen.steps.contains_key(&new.step.path)).count());
    if count > STEPS_PER_RUN_MAX {
        return Err(Rejection::TooManySteps { run: seen.run.id, count, max: STEPS_PER_RUN_MAX });
    }
    let already = events.is_empty();
    let run = if already { None } else { guard::progressed(seen) };
    Ok(Change { run, events, reply: Reply::Done { already }, follow: vec![] })
}

/// No step may come twice.
pub fn distinct(steps: &[StepResult]) -> Result<(), Rejection> {
    let mut paths = HashSet::with_capacity(steps.len());
    match steps.iter().find(|result| !paths.insert(&result.step.path)) {
        None => Ok(()),
        Some(twice) => Err(Rejection::StepDecided { step: twice.step.path.clone() }),
    }
}
