//! SetLabel: a workflow labels its run. Recorded like a step, so that replay neither repeats nor reorders it.

use super::lease_guard;
use crate::{
    Aggregate, Change, Done, EventKind, Lease, Name, Rejection, Rule, Run, StepRef, Timestamp,
    decide::record_step, limits::LABELS_MAX,
};

/// Sets a label of the run; the call has a step's identity.
#[derive(Debug, Clone, PartialEq)]
pub struct SetLabel {
    pub step: StepRef,
    pub name: Name,
    pub value: Name,
}

impl Rule for SetLabel {
    type Sender = Lease;
    type Reply = Done;

    /// Even when a later call has set another value meanwhile.
    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<Done> {
        record_step::is_recorded(seen, &self.step).then_some(Done::BEFORE)
    }

    /// Adds the label to the row; the value that was under the name before is gone.
    fn decide(&self, _: Timestamp, seen: &Aggregate, _: &Lease) -> Result<Change<Done>, Rejection> {
        let SetLabel { step, name, value } = self;
        if lease_guard::known_or_new_step(seen, step)?.is_some() {
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
        let mut change = Change::event(event, None, Done::NOW);
        change.run = match labels.get(name) {
            Some(same) if same == value => lease_guard::progressed(seen),
            Some(_) | None => {
                let labels = labels.with(name.clone(), value.clone());
                Some(Run { labels, crashes: 0, ..seen.run.clone() })
            }
        };
        Ok(change)
    }
}
