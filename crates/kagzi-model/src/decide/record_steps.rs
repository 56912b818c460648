//! RecordSteps: several results in one commit, in the order in which the function was told of them.

use std::collections::HashSet;

use super::{lease_guard, record_step};
use crate::{
    Aggregate, Change, Done, Ends, Lease, Rejection, Rule, StepResult, Timestamp, command::result_bytes,
    limits::STEPS_PER_RUN_MAX,
};

/// Records several results together, in this order.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordSteps {
    pub steps: Vec<StepResult>,
}

impl Rule for RecordSteps {
    type Sender = Lease;
    type Reply = Done;

    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<Done> {
        let recorded = self.steps.iter().all(|result| record_step::is_recorded(seen, &result.step));
        recorded.then_some(Done::BEFORE)
    }

    /// All of them or none; those that were recorded before are not written again.
    fn decide(&self, _: Timestamp, seen: &Aggregate, _: &Lease) -> Result<Change<Done>, Rejection> {
        let steps = &self.steps;
        let mut events = Vec::with_capacity(steps.len());
        for result in steps {
            events.extend(record_step::unless_recorded(seen, result)?);
        }
        distinct(steps)?;
        let new = steps.iter().filter(|new| !seen.steps.contains_key(&new.step.path)).count();
        let count = seen.steps.len().saturating_add(new);
        if count > STEPS_PER_RUN_MAX {
            return Err(Rejection::TooManySteps { run: seen.run.id, count, max: STEPS_PER_RUN_MAX });
        }
        Ok(Change { run: lease_guard::progressed(seen), events, reply: Done::NOW, follow: vec![] })
    }

    fn payload_bytes(&self) -> usize {
        result_bytes(&self.steps)
    }

    fn ends(&self) -> Ends<'_> {
        Ends::Steps(&self.steps)
    }
}

/// No step may come twice.
pub fn distinct(steps: &[StepResult]) -> Result<(), Rejection> {
    let mut paths = HashSet::with_capacity(steps.len());
    match steps.iter().find(|result| !paths.insert(&result.step.path)) {
        None => Ok(()),
        Some(twice) => Err(Rejection::StepDecided { step: twice.step.path.clone() }),
    }
}
