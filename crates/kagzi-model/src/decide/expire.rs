//! Expire: time alone ends something.

use std::borrow::Cow;

use super::{
    ending::{self, Ending},
    fail_step, orphan, park,
};
use crate::{
    Aggregate, Attempted, Author, Change, ClosePolicy, EventKind, Failure, Lease, Reclaimed, Rejection, Rule,
    Run, RunId, RunKey, State, StepRef, StepState, Timestamp,
    act::{Cancel, Loss, Terminate},
    codes,
    limits::CLOSED_PER_TURN,
};

/// Acts on a passed deadline or a lease that ran out. `losses_max` as in [`Loss`].
#[derive(Debug, Clone, PartialEq)]
pub struct Expire {
    pub losses_max: u32,
}

impl Rule for Expire {
    type Sender = ();
    type Reply = Reclaimed;

    /// The deadline ends the run from any state; a step that ran too long is a failed attempt; a lease that
    /// ran out is taken back.
    fn decide(&self, now: Timestamp, seen: &Aggregate, (): &()) -> Result<Change<Reclaimed>, Rejection> {
        let run = &seen.run;
        if run.state.finished() {
            return Ok(close_children(now, seen));
        }
        if run.deadline_at.is_some_and(|deadline| deadline <= now) {
            let why = "the run did not finish before its deadline";
            let failure = Failure::new(codes::TIMED_OUT, why).non_retryable();
            return Ok(ending::end(now, seen, Ending::TimedOut, failure, Reclaimed::Ended));
        }
        match run.lease() {
            Some(lease) if lease.until <= now => {
                let loss = Loss { cut_off: false, losses_max: self.losses_max };
                let taken = orphan::take_back(now, seen, lease, loss);
                Ok(taken.expect("only a worker that was cut off keeps its run"))
            }
            Some(lease) if lease.step_timeout_at.is_some_and(|at| at <= now) => Ok(steps(now, seen, lease)),
            Some(_) | None => Ok(Change::nothing(Reclaimed::Nothing)),
        }
    }

    fn takes_lease(&self) -> Option<&'static str> {
        Some("the lease ran out or the run's deadline passed")
    }
}

/// Tells some of the children of an ended run to end, and comes back for the rest.
fn close_children(now: Timestamp, seen: &Aggregate) -> Change<Reclaimed> {
    let run = &seen.run;
    if run.close_at.is_none() {
        return Change::nothing(Reclaimed::Nothing);
    }
    let family = seen.family.as_deref();
    let closes = family.map_or(vec![], |family| family.to_close(CLOSED_PER_TURN));
    let is_all = closes.len() < CLOSED_PER_TURN;
    let why = format!("its parent run {} ended as {}", run.id, run.state.status().name());
    let by = Author::new("kagzi", why);
    let follow = closes.iter().map(|(child, close)| {
        let child = RunKey::new(run.namespace.clone(), *child);
        match close {
            ClosePolicy::Terminate => child.order(by.clone(), Terminate),
            ClosePolicy::Cancel | ClosePolicy::Abandon => child.order(by.clone(), Cancel),
        }
    });
    let follow = follow.collect();
    let children: Vec<RunId> = closes.into_iter().map(|(child, _)| child).collect();
    let events =
        if children.is_empty() { vec![] } else { vec![(EventKind::ChildrenClosed { children }, None)] };
    let row = Run { close_at: (!is_all).then_some(now), ..run.clone() };
    Change { run: Some(row), events, reply: Reclaimed::Nothing, follow }
}

/// Fails the steps that ran too long, by their policies. The worker may hang in them, so it loses the run.
fn steps(now: Timestamp, seen: &Aggregate, lease: &Lease) -> Change<Reclaimed> {
    let mut running: Vec<_> = seen
        .open_steps()
        .filter_map(|step| match &step.state {
            StepState::Running { timeout_at: Some(at), policy, .. } => Some((step, *at, policy)),
            StepState::Running { .. } | StepState::Waiting(_) | StepState::Done(_) => None,
        })
        .collect();
    running.sort_by_key(|(step, ..)| step.path.clone());
    let (late, early): (Vec<_>, Vec<_>) = running.into_iter().partition(|(_, at, _)| *at <= now);
    if late.is_empty() {
        // The step that set the time has ended: arm it for the next one.
        let step_timeout_at = early.iter().map(|(_, at, _)| *at).min();
        let state = State::Leased(Lease { step_timeout_at, ..lease.clone() });
        let run = Some(Run { state, ..seen.run.clone() });
        return Change { run, events: vec![], reply: Reclaimed::Nothing, follow: vec![] };
    }
    let mut change = Change::nothing(Reclaimed::Ended);
    let mut any_final = false;
    let several = late.len() > 1;
    // Each is judged with the ones before it counted: limits that hold for the whole run hold for these
    // together.
    let mut judging = Cow::Borrowed(seen);
    for (step, _, policy) in late {
        let named = StepRef { path: step.path.clone(), position: step.position };
        let failure = Failure::new(codes::TIMED_OUT, &format!("step '{}' ran longer than it may", step.path));
        let (event, reply) = fail_step::judge(now, &judging, &named, (&failure, 0), policy);
        any_final |= matches!(reply, Attempted::Final { .. });
        if several {
            judging.to_mut().absorb(now, &event);
        }
        change.events.push((event, None));
    }
    change.run = Some(Run { crashes: 0, ..seen.run.clone() });
    if any_final { park::ready_after(now, seen, change) } else { park::after_events(now, seen, change) }
}
