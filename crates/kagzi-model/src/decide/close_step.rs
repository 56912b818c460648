//! CloseStep: the code dropped a step while an attempt ran.

use super::lease_guard;
use crate::{
    Aggregate, Change, Done, Ends, EventKind, Lease, Rejection, Rule, StepRef, StepState, Timestamp,
};

/// The code dropped a step that the record knows to run.
#[derive(Debug, Clone, PartialEq)]
pub struct CloseStep {
    pub step: StepRef,
}

impl Rule for CloseStep {
    type Sender = Lease;
    type Reply = Done;

    /// Notes it only where the record knows of the attempt: else there is nothing that could time out.
    fn decide(&self, _: Timestamp, seen: &Aggregate, _: &Lease) -> Result<Change<Done>, Rejection> {
        let CloseStep { step } = self;
        match lease_guard::known_step(seen, step)? {
            Some(known) if !known.closed && matches!(known.state, StepState::Running { .. }) => {
                let attempt = known.attempts.saturating_add(1);
                let (path, position) = (step.path.clone(), step.position);
                let event = EventKind::StepClosed { step: path, position, attempt };
                Ok(Change::event(event, None, Done::NOW))
            }
            Some(_) | None => Ok(Change::nothing(Done::BEFORE)),
        }
    }

    fn ends(&self) -> Ends<'_> {
        Ends::Step(&self.step.path)
    }
}
