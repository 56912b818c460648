//! What a run knows of the runs that it has started.

use super::Aggregate;
use crate::{Failure, Name, StepState, Timestamp, Wait, child_of, codes::CHILD_CLOSED};

impl Aggregate {
    /// What is told on a child's channel is its end.
    pub(super) fn hear_of_child(&mut self, channel: &Name) {
        if let Some(family) = &mut self.family
            && let Some(child) = child_of(channel)
        {
            family.end(child);
        }
    }

    /// A run that ended and goes on again had its children closed meanwhile: the steps that wait for those
    /// begin anew, with other children.
    pub(super) fn forget_closed_children(&mut self, at: Timestamp) {
        let Some(family) = &self.family else { return };
        for path in &self.open {
            let Some(step) = self.steps.get_mut(path) else { continue };
            if let StepState::Waiting(Wait::Child { channel, .. }) = &step.state
                && child_of(channel).is_some_and(|child| family.was_closed(child))
            {
                let failure = Failure::new(CHILD_CLOSED, "its child was closed when the run ended");
                step.state = StepState::Waiting(Wait::Retry { at, failure });
            }
        }
    }
}
