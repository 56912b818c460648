//! Complete: the run ends with its output.

use super::{ending, guard, record_step};
use crate::{
    Aggregate, Change, EventKind, LeaseRef, Payload, Rejection, Reply, Run, State, StepResult, Timestamp,
};

/// Ends the run once, with the last results that came along: all of it or nothing. A repeat by the same lease is
/// told that it is done.
pub fn decide(
    now: Timestamp,
    seen: &Aggregate,
    lease: &LeaseRef,
    steps: &[StepResult],
    output: &Payload,
) -> Result<Change, Rejection> {
    if seen.run.state == State::Completed && seen.run.epoch == lease.epoch {
        return Ok(Change::nothing(Reply::Done { already: true }));
    }
    guard::held(seen, lease)?;
    let mut events = Vec::with_capacity(steps.len() + 1);
    for (at, last) in steps.iter().enumerate() {
        if steps[..at].iter().any(|other| other.step.path == last.step.path) {
            return Err(Rejection::StepDecided { step: last.step.path.clone() });
        }
        let counted = (last.attempt, last.elapsed_ms);
        events.extend(record_step::decide(seen, lease, &last.step, counted, &last.result)?.events);
    }
    events.push((EventKind::RunCompleted, Some(output.clone())));
    let run = Run { state: State::Completed, finished_at: Some(now), ..seen.run.clone() };
    let follow = ending::note(&run).into_iter().collect();
    Ok(Change { run: Some(run), events, reply: Reply::Done { already: false }, follow })
}
