//! Progress: a long step says how far it is.

use super::{history_bound, lease_guard};
use crate::{
    Aggregate, Change, Done, EventKind, Lease, Payload, Rejection, Rule, StepRef, StepState, Timestamp, Wait,
    limits::PROGRESS_EVENTS_MAX,
};

/// Notes how far a long step is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    pub step: StepRef,
    pub progress: Payload,
}

impl Rule for Progress {
    type Sender = Lease;
    type Reply = Done;

    /// Keeps what the next attempt may read, should there be one.
    fn decide(&self, now: Timestamp, seen: &Aggregate, _: &Lease) -> Result<Change<Done>, Rejection> {
        let Progress { step, progress } = self;
        let known = lease_guard::known_or_new_step(seen, step)?;
        match known.map(|known| &known.state) {
            // The next attempt then begins where an earlier word said. That is late, but the run can still be
            // loaded.
            Some(StepState::Running { .. } | StepState::Waiting(Wait::Retry { .. })) | None
                if seen.last_seq >= PROGRESS_EVENTS_MAX
                    || !history_bound::fits(seen, progress.data.len())
                    || !keeps(now, seen, self) =>
            {
                Ok(Change::nothing(Done::BEFORE))
            }
            Some(StepState::Running { .. } | StepState::Waiting(Wait::Retry { .. })) | None => {
                let attempt = known.map_or(0, |known| known.attempts).saturating_add(1);
                let (path, position) = (step.path.clone(), step.position);
                let event = EventKind::StepProgressed { step: path, position, attempt };
                Ok(Change::event(event, Some(progress.clone()), Done::NOW))
            }
            Some(StepState::Done(_) | StepState::Waiting(_)) => {
                Err(Rejection::StepDecided { step: step.path.clone() })
            }
        }
    }

    fn payload_bytes(&self) -> usize {
        self.progress.data.len()
    }
}

/// Whether the word is worth a line now: the more was said before, the rarer it is.
fn keeps(now: Timestamp, seen: &Aggregate, Progress { step, progress }: &Progress) -> bool {
    let bytes = progress.data.len() as u64;
    seen.progress.as_deref().is_none_or(|kept| kept.keeps(now, &step.path, bytes))
}
