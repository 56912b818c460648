//! RecordStep: a result is recorded once.

use super::lease_guard;
use crate::{
    Aggregate, Change, Done, Ends, EventKind, Lease, Payload, Rejection, Rule, StepEnd, StepRef, StepResult,
    StepState, Timestamp, Wait,
};

/// Records a step's result.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordStep(pub StepResult);

impl Rule for RecordStep {
    type Sender = Lease;
    type Reply = Done;

    /// The answer was lost and the worker sent it again, perhaps after the run went on.
    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<Done> {
        is_recorded(seen, &self.0.step).then_some(Done::BEFORE)
    }

    /// Adds the result to the history; the row changes only when it must forget earlier crashes.
    #[inline(always)]
    fn decide(&self, _: Timestamp, seen: &Aggregate, _: &Lease) -> Result<Change<Done>, Rejection> {
        let (event, result) = recorded(seen, &self.0)?;
        let change = Change::event(event, result, Done::NOW);
        Ok(Change { run: lease_guard::progressed(seen), ..change })
    }

    fn payload_bytes(&self) -> usize {
        self.0.result.data.len()
    }

    fn ends(&self) -> Ends<'_> {
        Ends::Step(&self.0.step.path)
    }
}

/// Whether the step has its result, at the place where the code has it too.
pub fn is_recorded(seen: &Aggregate, step: &StepRef) -> bool {
    let known = seen.steps.get(&step.path);
    known.is_some_and(|known| {
        let has_result = match known.state {
            StepState::Done(StepEnd::Recorded | StepEnd::Labelled) => true,
            StepState::Done(StepEnd::Failed { .. } | StepEnd::Elapsed) => false,
            StepState::Running { .. } | StepState::Waiting(_) => false,
        };
        has_result && known.position == step.position
    })
}

/// The line that records the result, unless it is there.
pub fn unless_recorded(
    seen: &Aggregate,
    result: &StepResult,
) -> Result<Option<(EventKind, Option<Payload>)>, Rejection> {
    if is_recorded(seen, &result.step) { Ok(None) } else { recorded(seen, result).map(Some) }
}

/// The line that records the result.
fn recorded(seen: &Aggregate, result: &StepResult) -> Result<(EventKind, Option<Payload>), Rejection> {
    let StepResult { step, attempt, result, elapsed_ms } = result;
    let known = lease_guard::known_or_new_step(seen, step)?;
    match known.map(|known| &known.state) {
        Some(StepState::Running { .. } | StepState::Waiting(Wait::Retry { .. })) | None => {}
        Some(StepState::Done(_) | StepState::Waiting(_)) => {
            return Err(Rejection::StepDecided { step: step.path.clone() });
        }
    }
    // The record counts attempts itself; a worker's number below it is a slip, never a reset.
    let attempt = (*attempt).max(known.map_or(0, |known| known.attempts).saturating_add(1));
    let event = EventKind::StepCompleted {
        step: step.path.clone(),
        position: step.position,
        attempt,
        elapsed_ms: (*elapsed_ms).max(0),
    };
    Ok((event, Some(result.clone())))
}
