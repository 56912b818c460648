//! Retry: a person lets a run go on, also one that ended.
//!
//! The only way out of a terminal state, taken only by an explicit order of a person, and recorded.

use crate::{
    Aggregate, Author, Change, EventKind, Name, Ordered, Rejection, Rule, Run, State, Status, Timestamp,
    act::Resume,
};

/// Lets an ended run go on from its failed step, or from an earlier one that failed; a run that has not ended
/// is resumed. `request` is the caller's own name for the request.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    pub from: Option<Name>,
    pub request: Option<Name>,
}

impl Rule for Retry {
    type Sender = Author;
    type Reply = Ordered;

    /// A request that was carried out before is answered with where the run stands.
    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<Ordered> {
        let request = self.request.as_ref();
        seen.was_requested(request).then(|| Ordered { status: seen.run.state.status(), already: true })
    }

    /// Makes the run ready again.
    fn decide(&self, now: Timestamp, seen: &Aggregate, by: &Author) -> Result<Change<Ordered>, Rejection> {
        let run = &seen.run;
        match &run.state {
            State::Failed { .. } | State::TimedOut { .. } | State::Cancelled { .. } => {
                self.reopen(now, seen, by)
            }
            State::Completed => Err(Rejection::NotReopenable { run: run.id, status: run.state.status() }),
            State::Ready { .. } | State::Leased(_) | State::Waiting(_) | State::Paused { .. } => {
                Resume { request: self.request.clone() }.decide(now, seen, by)
            }
        }
    }
}

impl Retry {
    /// What is recorded stays, and only what failed the run gets a fresh set of attempts. With `from` an
    /// earlier failure is forgiven too, as long as nothing but failures came after it.
    fn reopen(&self, now: Timestamp, seen: &Aggregate, by: &Author) -> Result<Change<Ordered>, Rejection> {
        let run = &seen.run;
        let forgives = seen.forgivable(self.from.as_ref().or(seen.failed_by.as_ref()));
        if let Some(from) = &self.from
            && !forgives.contains(from)
        {
            return Err(Rejection::NotForgivable { run: run.id, step: from.clone() });
        }
        let reopened = Run {
            state: State::Ready { since: now },
            crashes: 0,
            attempts: 0,
            finished_at: None,
            close_at: None,
            // A deadline that passed would end it again at once; the operator has overruled it.
            deadline_at: run.deadline_at.filter(|at| *at > now),
            ..run.clone()
        };
        let (request, Author { by, reason }) = (self.request.clone(), by.clone());
        let event = EventKind::RunReopened { forgives, request, by, reason };
        Ok(Change::new(reopened, event, Ordered { status: Status::Pending, already: false }))
    }
}
