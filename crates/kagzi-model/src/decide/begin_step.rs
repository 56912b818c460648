//! BeginStep: must this step run?

use super::guard;
use crate::{
    Aggregate, BeginAnswer, Change, EventKind, Lease, LeaseRef, Millis, Rejection, Reply, RetryPolicy, Run,
    State, StepRef, StepState, Timestamp,
};

/// Answers from the record, or notes that an attempt begins and when the server ends it.
pub fn decide(
    now: Timestamp,
    seen: &Aggregate,
    lease: &LeaseRef,
    step: &StepRef,
    (timeout_ms, policy): (Option<Millis>, &RetryPolicy),
) -> Result<Change, Rejection> {
    let held = guard::held(seen, lease)?;
    guard::same_position(seen, step)?;
    guard::room_for_step(seen, step)?;
    let known = seen.steps.get(&step.path);
    let attempt = known.map_or(0, |known| known.attempts).saturating_add(1);
    let answer = |answer| Ok(Change::nothing(Reply::Begin(answer)));
    match known.map(|known| &known.state) {
        Some(StepState::Completed | StepState::Slept) => answer(BeginAnswer::Recorded),
        Some(StepState::Failed { failure, finality }) => answer(BeginAnswer::Failed {
            failure: failure.clone(),
            attempts: known.map_or(0, |known| known.attempts),
            finality: *finality,
        }),
        Some(StepState::Retry { at, .. } | StepState::Sleeping { until: at }) if *at > now => {
            answer(BeginAnswer::NotReady { at: *at })
        }
        Some(StepState::Sleeping { .. }) => answer(BeginAnswer::Recorded),
        Some(StepState::Running { .. }) => answer(BeginAnswer::Execute { attempt }),
        Some(StepState::Retry { .. }) | None => {
            let timeout_at = timeout_ms.map(|ms| now.plus_ms(ms));
            let (path, position, policy) = (step.path.clone(), step.position, policy.clone());
            let event = EventKind::StepStarted { step: path, position, attempt, timeout_at, policy };
            let mut change = Change::event(event, None, Reply::Begin(BeginAnswer::Execute { attempt }));
            let earlier = [held.step_timeout_at, timeout_at].into_iter().flatten().min();
            if earlier != held.step_timeout_at {
                let lease = Lease { step_timeout_at: earlier, ..held.clone() };
                change.run = Some(Run { state: State::Leased(lease), ..seen.run.clone() });
            }
            Ok(change)
        }
    }
}
