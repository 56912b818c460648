//! Complete: the run ends with its output.

use super::{ending, guard, record_step, record_steps};
use crate::{
    Aggregate, Change, EventKind, LeaseRef, Payload, Rejection, Reply, Run, State, StepResult, Timestamp,
    limits::STEPS_PER_RUN_MAX,
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
    // A single result, the usual case, has nothing to be compared with.
    if steps.len() > 1 {
        record_steps::distinct(steps)?;
        let count = seen.steps.len() + steps.len();
        if count > STEPS_PER_RUN_MAX {
            return Err(Rejection::TooManySteps { run: seen.run.id, count, max: STEPS_PER_RUN_MAX });
        }
    }
    let mut events = Vec::with_capacity(steps.len() + 1);
    for last in steps {
        let counted = (last.attempt, last.elapsed_ms);
        events.extend(record_step::decide(seen, lease, &last.step, counted, &last.result)?.events);
    }
    events.push((EventKind::RunCompleted, Some(output.clone())));
    let run = Run { state: State::Completed, finished_at: Some(now), ..seen.run.clone() };
    let follow = ending::note(&run).into_iter().collect();
    Ok(Change { run: Some(run), events, reply: Reply::Done { already: false }, follow })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lease, RunId, RunOptions, StartRun, StepRef, WorkerId, decide::start};

    fn leased() -> (Aggregate, LeaseRef) {
        let (namespace, id) = (crate::Name::from("shop"), RunId(uuid::Uuid::from_u128(1)));
        let start = StartRun {
            namespace: namespace.clone(),
            id,
            business_id: id.to_string().into(),
            workflow_type: "charge".into(),
            task_queue: "orders".into(),
            input: Payload::new(&b"{}"[..]),
            deadline_at: None,
            options: RunOptions::default(),
            labels: Default::default(),
        };
        let run = start::decide(Timestamp(1), None, None, &start).unwrap().run.unwrap();
        let (worker, since, until) = (WorkerId(uuid::Uuid::from_u128(2)), Timestamp(1), Timestamp(9));
        let state = State::Leased(Lease { worker, since, until, step_timeout_at: None });
        (Aggregate::new(Run { state, ..run }, 1), LeaseRef { namespace, run: id, epoch: 0 })
    }

    fn results(count: u32) -> Vec<StepResult> {
        let step = |n: u32| StepRef { path: format!("step#{n}").into(), position: n };
        let result = || Payload::new(&b"1"[..]);
        (0..count)
            .map(|n| StepResult { step: step(n), attempt: 1, result: result(), elapsed_ms: 0 })
            .collect()
    }

    #[test]
    fn more_steps_than_a_run_may_have_are_refused_also_when_they_come_with_the_end() {
        let (seen, lease) = leased();
        let max = u32::try_from(STEPS_PER_RUN_MAX).unwrap();
        let output = Payload::new(&b"1"[..]);

        let fits = decide(Timestamp(2), &seen, &lease, &results(max), &output);
        let too_many = decide(Timestamp(2), &seen, &lease, &results(max + 1), &output);

        assert_eq!(fits.unwrap().events.len(), STEPS_PER_RUN_MAX + 1);
        assert!(matches!(too_many, Err(Rejection::TooManySteps { .. })));
    }

    #[test]
    fn a_step_that_comes_twice_with_the_end_is_refused() {
        let (seen, lease) = leased();
        let mut twice = results(3);
        twice.push(twice[1].clone());

        let refused = decide(Timestamp(2), &seen, &lease, &twice, &Payload::new(&b"1"[..]));

        assert_eq!(refused, Err(Rejection::StepDecided { step: "step#1".into() }));
    }
}
