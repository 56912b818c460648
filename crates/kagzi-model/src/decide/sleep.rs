//! Sleep: the run asks to be left alone for a while.

use super::{guard, park};
use crate::{
    Aggregate, Asleep, Change, EventKind, Lease, Millis, Rejection, Rule, StepRef, StepState, Timestamp,
    limits::WAIT_MS_MAX,
};

/// Begins a sleep; with `park` the lease ends unless it is over already.
#[derive(Debug, Clone, PartialEq)]
pub struct Sleep {
    pub step: StepRef,
    pub duration_ms: Millis,
    pub park: bool,
}

impl Rule for Sleep {
    type Sender = Lease;
    type Reply = Asleep;

    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<Asleep> {
        match seen.steps.get(&self.step.path).map(|known| &known.state) {
            Some(StepState::Sleeping { until }) if seen.run.lease().is_none() => Some(Asleep::Until(*until)),
            Some(StepState::Sleeping { .. } | StepState::Slept | StepState::Running { .. }) => None,
            Some(StepState::Retry { .. } | StepState::Completed | StepState::Failed { .. }) | None => None,
        }
    }

    /// Records when the sleep ends. Asked again, it answers with what is left of it.
    fn decide(&self, now: Timestamp, seen: &Aggregate, _: &Lease) -> Result<Change<Asleep>, Rejection> {
        let Sleep { step, duration_ms, park } = self;
        guard::same_position(seen, step)?;
        guard::room_for_step(seen, step)?;
        let change = match seen.steps.get(&step.path).map(|known| &known.state) {
            Some(StepState::Slept) => return Ok(Change::nothing(Asleep::Over { already: true })),
            Some(StepState::Sleeping { until }) => Change::nothing(Asleep::Until(*until)),
            Some(StepState::Running { .. } | StepState::Retry { .. } | StepState::Completed) => {
                return Err(Rejection::StepDecided { step: step.path.clone() });
            }
            Some(StepState::Failed { .. }) => {
                return Err(Rejection::StepDecided { step: step.path.clone() });
            }
            None => {
                let until = now.plus_ms((*duration_ms).clamp(0, WAIT_MS_MAX));
                let (path, position) = (step.path.clone(), step.position);
                let event = EventKind::SleepScheduled { step: path, position, until };
                Change { run: guard::progressed(seen), ..Change::event(event, None, Asleep::Until(until)) }
            }
        };
        Ok(if *park { park::after_events(now, seen, change) } else { change })
    }
}
