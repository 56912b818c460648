//! Sleep: the run asks to be left alone for a while.

use super::{guard, park};
use crate::{
    Aggregate, Change, EventKind, LeaseRef, Millis, Rejection, Reply, StepRef, StepState, Timestamp,
    limits::WAIT_MS_MAX,
};

/// Records when the sleep ends. Asked again, it answers with what is left of it.
pub fn decide(
    now: Timestamp,
    seen: &Aggregate,
    lease: &LeaseRef,
    step: &StepRef,
    (duration_ms, park): (Millis, bool),
) -> Result<Change, Rejection> {
    let known = seen.steps.get(&step.path);
    if let Some(known) = known
        && guard::was_last(seen, lease)
        && let StepState::Sleeping { until } = known.state
    {
        return Ok(Change::nothing(Reply::Sleeping { until }));
    }
    guard::held(seen, lease)?;
    guard::same_position(seen, step)?;
    guard::room_for_step(seen, step)?;
    match known.map(|known| &known.state) {
        Some(StepState::Slept) => Ok(Change::nothing(Reply::Done { already: true })),
        Some(StepState::Sleeping { until }) => {
            let waiting = Change::nothing(Reply::Sleeping { until: *until });
            if park { park::after(now, seen, waiting) } else { Ok(waiting) }
        }
        Some(StepState::Running { .. } | StepState::Retry { .. } | StepState::Completed) => {
            Err(Rejection::StepDecided { step: step.path.clone() })
        }
        Some(StepState::Failed { .. }) => Err(Rejection::StepDecided { step: step.path.clone() }),
        None => {
            let until = now.plus_ms(duration_ms.clamp(0, WAIT_MS_MAX));
            let event = EventKind::SleepScheduled { step: step.path.clone(), position: step.position, until };
            let reply = Reply::Sleeping { until };
            let change = Change { run: guard::progressed(seen), ..Change::event(event, None, reply) };
            if park { park::after(now, seen, change) } else { Ok(change) }
        }
    }
}
