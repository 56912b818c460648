//! Claim: a due run goes to a worker under a new epoch.

use crate::{
    Aggregate, Change, Claimed, EventKind, Lease, Name, Rejection, Rule, Run, State, StepState, Timestamp,
    WorkerId,
};

/// Gives a due run to a worker, under a new epoch.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    pub worker: WorkerId,
    pub until: Timestamp,
}

impl Rule for Claim {
    type Sender = ();
    type Reply = Claimed;

    /// Raises the epoch, so that nothing written under an older lease is accepted from here on.
    #[inline(always)]
    fn decide(&self, now: Timestamp, seen: &Aggregate, (): &()) -> Result<Change<Claimed>, Rejection> {
        let Claim { worker, until } = *self;
        let run = &seen.run;
        // What is ready needs no time to pass: a clock that was set back does not hold it up. But for a run
        // that is to start later.
        let later = run.started_at.is_none() && run.options.start_at.is_some_and(|at| at > now);
        let ready = matches!(run.state, State::Ready { .. }) && !later;
        if !ready && run.due_at().is_none_or(|due| due > now) {
            return Err(Rejection::NotDue { run: run.id });
        }
        let epoch = run.epoch + 1;
        let leased = Run {
            state: State::Leased(Lease { worker, since: now, until, step_timeout_at: None }),
            epoch,
            dispatch_count: run.dispatch_count.saturating_add(1),
            started_at: run.started_at.or(Some(now)),
            ..run.clone()
        };
        let event = EventKind::RunClaimed { worker, epoch, slept: slept(now, seen) };
        Ok(Change::new(leased, event, Claimed { epoch }))
    }
}

/// The sleeps that are over, in a fixed order.
fn slept(now: Timestamp, seen: &Aggregate) -> Vec<Name> {
    let mut over: Vec<_> = seen
        .open_steps()
        .filter(|step| matches!(&step.state, StepState::Waiting(wait) if wait.is_over(now)))
        // What came before its time was over is for the code to take.
        .filter(|step| !seen.is_signalled(step))
        .collect();
    over.sort_by_key(|step| (step.position, step.path.clone()));
    over.into_iter().map(|step| step.path.clone()).collect()
}
