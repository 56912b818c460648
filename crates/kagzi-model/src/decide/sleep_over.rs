//! SleepOver: a sleep ended while other steps kept the run busy.

use crate::{
    Aggregate, Asleep, Change, EventKind, Lease, Name, Rejection, Rule, StepEnd, StepState, Timestamp, Wait,
};

/// A sleep ended while the worker still held the run.
#[derive(Debug, Clone, PartialEq)]
pub struct SleepOver {
    pub step: Name,
}

impl Rule for SleepOver {
    type Sender = Lease;
    type Reply = Asleep;

    /// Ends the sleep, unless the server's clock says that it is not over: the worker then waits the rest.
    fn decide(&self, now: Timestamp, seen: &Aggregate, _: &Lease) -> Result<Change<Asleep>, Rejection> {
        let step = &self.step;
        match seen.steps.get(step).map(|known| &known.state) {
            Some(StepState::Done(StepEnd::Elapsed)) => Ok(Change::nothing(Asleep::Over { already: true })),
            Some(StepState::Waiting(Wait::Timer { until })) if *until > now => {
                Ok(Change::nothing(Asleep::Until(*until)))
            }
            Some(StepState::Waiting(Wait::Timer { .. })) => {
                let event = EventKind::SleepOver { step: step.clone() };
                Ok(Change::event(event, None, Asleep::Over { already: false }))
            }
            Some(StepState::Running { .. } | StepState::Waiting(_) | StepState::Done(_)) | None => {
                Err(Rejection::StepUnknown { run: seen.run.id, step: step.clone() })
            }
        }
    }
}
