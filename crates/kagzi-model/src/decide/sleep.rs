//! Sleep: the run asks to be left alone for a while.

use super::{lease_guard, park};
use crate::{
    Aggregate, Asleep, Change, EventKind, Lease, Millis, Rejection, Rule, StepEnd, StepRef, StepState,
    Timestamp, Wait, limits::WAIT_MS_MAX,
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
            Some(StepState::Waiting(Wait::Timer { until })) if seen.run.lease().is_none() => {
                Some(Asleep::Until(*until))
            }
            Some(StepState::Waiting(_) | StepState::Done(_) | StepState::Running { .. }) | None => None,
        }
    }

    /// Records when the sleep ends. Asked again, it answers with what is left of it.
    fn decide(&self, now: Timestamp, seen: &Aggregate, _: &Lease) -> Result<Change<Asleep>, Rejection> {
        let Sleep { step, duration_ms, park } = self;
        let change = match lease_guard::known_or_new_step(seen, step)?.map(|known| &known.state) {
            Some(StepState::Done(StepEnd::Elapsed)) => {
                return Ok(Change::nothing(Asleep::Over { already: true }));
            }
            Some(StepState::Waiting(Wait::Timer { until })) => Change::nothing(Asleep::Until(*until)),
            Some(StepState::Running { .. } | StepState::Waiting(_) | StepState::Done(_)) => {
                return Err(Rejection::StepDecided { step: step.path.clone() });
            }
            None => {
                let until = now.plus_ms((*duration_ms).clamp(0, WAIT_MS_MAX));
                let (path, position) = (step.path.clone(), step.position);
                let event = EventKind::SleepScheduled { step: path, position, until };
                Change {
                    run: lease_guard::progressed(seen),
                    ..Change::event(event, None, Asleep::Until(until))
                }
            }
        };
        Ok(if *park { park::after_events(now, seen, change) } else { change })
    }
}
