//! CloseStep: the code dropped a step while an attempt ran, or while it ended.

use super::lease_guard;
use crate::{
    Aggregate, Change, Done, Ends, EventKind, Lease, Rejection, Rule, StepEnd, StepRef, StepState, Timestamp,
};

/// The code dropped a step that the record knows to run, or that has ended since and was not told of.
#[derive(Debug, Clone, PartialEq)]
pub struct CloseStep {
    pub step: StepRef,
}

impl Rule for CloseStep {
    type Sender = Lease;
    type Reply = Done;

    /// Notes it only where the record knows of the attempt: else there is nothing that could time out. And
    /// where a failure, a sleep's end or a label was the last thing recorded: the code had dropped the step
    /// before it heard, so a replay must not tell it either. A result is never taken back.
    fn decide(&self, _: Timestamp, seen: &Aggregate, _: &Lease) -> Result<Change<Done>, Rejection> {
        let CloseStep { step } = self;
        let is_wait = seen.mail.as_deref().is_some_and(|mail| mail.is_wait(&step.path));
        match lease_guard::known_step(seen, step)? {
            Some(known) if !known.closed => {
                let attempt = match &known.state {
                    StepState::Running { .. } => known.attempts.saturating_add(1),
                    // A signal that nobody heard of lies in front of its channel again.
                    StepState::Done(_) if known.is_told_last(seen.told) && is_wait => known.attempts,
                    StepState::Done(StepEnd::Failed { .. } | StepEnd::Elapsed | StepEnd::Labelled)
                        if known.is_told_last(seen.told) =>
                    {
                        known.attempts
                    }
                    StepState::Done(_) | StepState::Waiting(_) => return nothing(),
                };
                let (path, position) = (step.path.clone(), step.position);
                let event = EventKind::StepClosed { step: path, position, attempt };
                Ok(Change::event(event, None, Done::NOW))
            }
            Some(_) | None => nothing(),
        }
    }

    fn ends(&self) -> Ends<'_> {
        Ends::Step(&self.step.path)
    }
}

fn nothing() -> Result<Change<Done>, Rejection> {
    Ok(Change::nothing(Done::BEFORE))
}
