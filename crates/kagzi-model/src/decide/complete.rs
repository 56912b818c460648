//! Complete: the run ends with its output.

use super::{ending, record_step, record_steps};
use crate::{
    Aggregate, Change, Done, Ends, EventKind, Lease, Payload, Rejection, Rule, Run, State, StepResult,
    Timestamp, command::result_bytes, limits::STEPS_PER_RUN_MAX,
};

/// Ends the run with its output and the results that were not recorded before.
#[derive(Debug, Clone, PartialEq)]
pub struct Complete {
    pub steps: Vec<StepResult>,
    pub output: Payload,
}

impl Rule for Complete {
    type Sender = Lease;
    type Reply = Done;

    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<Done> {
        (seen.run.state == State::Completed).then_some(Done::BEFORE)
    }

    /// Ends the run once, with the last results that came along: all of it or nothing.
    #[inline(always)]
    fn decide(&self, now: Timestamp, seen: &Aggregate, _: &Lease) -> Result<Change<Done>, Rejection> {
        let Complete { steps, output } = self;
        fit(seen, steps)?;
        let mut events = Vec::with_capacity(steps.len() + 1);
        for last in steps {
            events.extend(record_step::unless_recorded(seen, last)?);
        }
        events.push((EventKind::RunCompleted, Some(output.clone())));
        let run = ending::ended(now, seen, Run { state: State::Completed, ..seen.run.clone() });
        let mut follow = Vec::new();
        ending::tell(seen, &run, Some(output), &mut follow);
        Ok(Change { run: Some(run), events, reply: Done::NOW, follow })
    }

    fn payload_bytes(&self) -> usize {
        self.output.data.len() + result_bytes(&self.steps)
    }

    fn ends(&self) -> Ends<'_> {
        Ends::Lease
    }
}

/// Refuses results that come with an end, where one of them comes twice or they are too many.
#[inline(always)]
pub fn fit(seen: &Aggregate, steps: &[StepResult]) -> Result<(), Rejection> {
    // A single result, the usual case, has nothing to be compared with.
    if steps.len() > 1 {
        record_steps::distinct(steps)?;
        let count = seen.steps.len() + steps.len();
        if count > STEPS_PER_RUN_MAX {
            return Err(Rejection::TooManySteps { run: seen.run.id, count, max: STEPS_PER_RUN_MAX });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RunId, RunOptions, StartRun, StepRef, WorkerId, decide::start};

    fn leased() -> (Aggregate, Lease) {
        let id = RunId(uuid::Uuid::from_u128(1));
        let start = StartRun {
            namespace: "shop".into(),
            id,
            business_id: None,
            workflow_type: "charge".into(),
            task_queue: "orders".into(),
            input: Payload::new(&b"{}"[..]),
            deadline_at: None,
            options: RunOptions::default(),
            labels: Default::default(),
            signals: Vec::new(),
        };
        let run = start::decide(Timestamp(1), None, None, &start).unwrap().run.unwrap();
        let (worker, since, until) = (WorkerId(uuid::Uuid::from_u128(2)), Timestamp(1), Timestamp(9));
        let lease = Lease { worker, since, until, step_timeout_at: None };
        (Aggregate::new(Run { state: State::Leased(lease.clone()), ..run }, 1), lease)
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
        let complete = |count| Complete { steps: results(count), output: Payload::new(&b"1"[..]) };

        let fits = complete(max).decide(Timestamp(2), &seen, &lease);
        let too_many = complete(max + 1).decide(Timestamp(2), &seen, &lease);

        assert_eq!(fits.unwrap().events.len(), STEPS_PER_RUN_MAX + 1);
        assert!(matches!(too_many, Err(Rejection::TooManySteps { .. })));
    }

    #[test]
    fn a_step_that_comes_twice_with_the_end_is_refused() {
        let (seen, lease) = leased();
        let mut twice = results(3);
        twice.push(twice[1].clone());

        let complete = Complete { steps: twice, output: Payload::new(&b"1"[..]) };
        let refused = complete.decide(Timestamp(2), &seen, &lease);

        assert_eq!(refused, Err(Rejection::StepDecided { step: "step#1".into() }));
    }
}
