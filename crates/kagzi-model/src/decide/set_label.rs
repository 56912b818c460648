//! SetLabel: a workflow labels its run. Recorded like a step, so that replay neither repeats nor reorders it.

use super::guard;
use crate::{
    Aggregate, Change, EventKind, LeaseRef, Name, Rejection, Reply, Run, StepRef, StepState,
    limits::LABELS_MAX,
};

/// Adds the label to the row; the value that was under the name before is gone. A repeat of the same call writes
/// nothing, even when a later call has set another value meanwhile.
pub fn decide(
    seen: &Aggregate,
    lease: &LeaseRef,
    step: &StepRef,
    (name, value): (&Name, &Name),
) -> Result<Change, Rejection> {
    let known = seen.steps.get(&step.path);
    if known.is_some_and(|known| known.state == StepState::Completed) && seen.run.epoch == lease.epoch {
        guard::same_position(seen, step)?;
        return Ok(Change::nothing(Reply::Done { already: true }));
    }
    guard::held(seen, lease)?;
    guard::same_position(seen, step)?;
    guard::room_for_step(seen, step)?;
    if known.is_some() {
        return Err(Rejection::StepDecided { step: step.path.clone() });
    }
    let labels = &seen.run.labels;
    if labels.get(name).is_none() && labels.len() >= LABELS_MAX {
        return Err(Rejection::TooManyLabels { run: seen.run.id, name: name.clone(), max: LABELS_MAX });
    }
    let event = EventKind::LabelSet {
        step: step.path.clone(),
        position: step.position,
        name: name.clone(),
        value: value.clone(),
    };
    let mut change = Change::event(event, None, Reply::Done { already: false });
    change.run = match labels.get(name) {
        Some(same) if same == value => guard::progressed(seen),
        Some(_) | None => {
            let labels = labels.with(name.clone(), value.clone());
            Some(Run { labels, crashes: 0, ..seen.run.clone() })
        }
    };
    Ok(change)
}
