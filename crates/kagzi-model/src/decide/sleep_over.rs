//! SleepOver: a sleep ended while other steps kept the run busy.

use super::guard;
use crate::{Aggregate, Change, EventKind, LeaseRef, Name, Rejection, Reply, StepState, Timestamp};

/// Ends the sleep, unless the server's clock says that it is not over: the worker then waits the rest.
pub fn decide(now: Timestamp, seen: &Aggregate, lease: &LeaseRef, step: &Name) -> Result<Change, Rejection> {
    guard::held(seen, lease)?;
    match seen.steps.get(step).map(|known| &known.state) {
        Some(StepState::Slept) => Ok(Change::nothing(Reply::Done { already: true })),
        Some(StepState::Sleeping { until }) if *until > now => {
            Ok(Change::nothing(Reply::Sleeping { until: *until }))
        }
        Some(StepState::Sleeping { .. }) => {
            let event = EventKind::SleepOver { step: step.clone() };
            Ok(Change::event(event, None, Reply::Done { already: false }))
        }
        Some(
            StepState::Running { .. }
            | StepState::Retry { .. }
            | StepState::Completed
            | StepState::Failed { .. },
        )
        | None => Err(Rejection::StepUnknown { run: seen.run.id, step: step.clone() }),
    }
}
