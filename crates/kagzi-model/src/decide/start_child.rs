//! StartChild: the code starts another run, in the commit that records it.

use super::{await_signal::told_before, lease_guard, park};
use crate::{
    Aggregate, Change, ChildBegan, ClosePolicy, Command, EventKind, IdReuse, Lease, Millis, Parent,
    Rejection, Rule, RunId, StartRun, StepRef, StepState, Timestamp, USER_LABEL, Wait, Waited,
    limits::{CHILDREN_MAX, LINEAGE_MAX, WAIT_MS_MAX, WAITS_OPEN_MAX},
};

/// Starts a run whose parent this one is. Both are in the database, or neither.
#[derive(Debug, Clone, PartialEq)]
pub struct StartChild {
    pub step: StepRef,
    /// As a client would ask for it. Its namespace is the parent's, whatever stands here.
    pub start: Box<StartRun>,
    pub close: ClosePolicy,
    /// The step ends with the child; else it ends with the start.
    pub awaited: bool,
    /// The parent is told of the child's end, because it may wait for it later.
    pub told: bool,
    /// How long the step waits for the child's end. The child goes on afterwards.
    pub timeout_ms: Option<Millis>,
    /// The lease ends, because the code waits for nothing but the child.
    pub park: bool,
}

impl Rule for StartChild {
    type Sender = Lease;
    type Reply = ChildBegan;

    /// The answer was lost; the lease may have ended with it.
    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<ChildBegan> {
        let known = seen.steps.get(&self.step.path).filter(|known| known.position == self.step.position)?;
        let child = seen.family.as_deref()?.of_step(&self.step.path)?;
        match &known.state {
            StepState::Done(_) => self.began_before(seen, child).ok(),
            StepState::Waiting(wait) if wait.channel().is_some() => self.began_before(seen, child).ok(),
            StepState::Waiting(_) | StepState::Running { .. } => None,
        }
    }

    /// Starts the child, and names it where it was started before.
    fn decide(&self, now: Timestamp, seen: &Aggregate, _: &Lease) -> Result<Change<ChildBegan>, Rejection> {
        let StartChild { step, start, close, awaited, told, timeout_ms, park } = self;
        let run = &seen.run;
        match lease_guard::known_or_new_step(seen, step)?.map(|known| &known.state) {
            // Its failure was forgiven, or its child was closed: another one is started.
            Some(StepState::Waiting(Wait::Retry { .. })) | None => {}
            Some(StepState::Running { .. } | StepState::Waiting(_) | StepState::Done(_)) => {
                return Err(Rejection::StepDecided { step: step.path.clone() });
            }
        }
        let depth = run.options.parent.as_ref().map_or(0, |parent| parent.depth).saturating_add(1);
        if depth > LINEAGE_MAX {
            return Err(Rejection::LineageTooDeep { run: run.id, max: LINEAGE_MAX });
        }
        if seen.family.as_deref().is_some_and(|family| family.started_len() >= CHILDREN_MAX) {
            return Err(Rejection::TooManyChildren { run: run.id, max: CHILDREN_MAX });
        }
        if *awaited && seen.open_len() >= WAITS_OPEN_MAX {
            return Err(Rejection::TooManyWaits { run: run.id, max: WAITS_OPEN_MAX });
        }
        let until = timeout_ms.filter(|_| *awaited).map(|ms| now.plus_ms(ms.clamp(0, WAIT_MS_MAX)));
        let mut start = start.clone();
        start.namespace = run.namespace.clone();
        if start.task_queue.is_empty() {
            start.task_queue = run.task_queue.clone();
        }
        let (path, told) = (step.path.clone(), *told || *awaited);
        start.options.parent = Some(Parent { run: run.id, step: path, close: *close, depth, told });
        // A child belongs to the trace and to the person of its parent.
        if start.options.trace.is_none() {
            start.options.trace.clone_from(&run.options.trace);
        }
        if let Some(user) = run.labels.get(USER_LABEL)
            && start.labels.get(USER_LABEL).is_none()
        {
            start.labels = start.labels.with(USER_LABEL.into(), user.clone());
        }
        // A parent that is retried starts a child anew that has failed.
        start.options.reuse = IdReuse::AfterFailure;
        let event = EventKind::ChildStarted {
            step: step.path.clone(),
            position: step.position,
            child: start.id,
            workflow_type: start.workflow_type.clone(),
            task_queue: start.task_queue.clone(),
            close: *close,
            awaited: *awaited,
            until,
            told,
        };
        let reply = ChildBegan { child: start.id, waited: awaited.then_some(Waited::Until(until)) };
        let change = Change {
            run: lease_guard::progressed(seen),
            follow: vec![Command::start(start)],
            ..Change::event(event, None, reply)
        };
        Ok(if *park && *awaited { park::after_events(now, seen, change) } else { change })
    }

    fn payload_bytes(&self) -> usize {
        0
    }
}

impl StartChild {
    fn began_before(&self, seen: &Aggregate, child: RunId) -> Result<ChildBegan, Rejection> {
        let waited = match seen.steps.get(&self.step.path).map(|known| &known.state) {
            Some(StepState::Waiting(wait)) => Some(Waited::Until(wait.due_at())),
            Some(StepState::Done(end)) if self.awaited => Some(told_before(seen, &self.step, end)?),
            Some(StepState::Done(_) | StepState::Running { .. }) | None => None,
        };
        Ok(ChildBegan { child, waited })
    }
}
