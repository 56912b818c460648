//! Resume: a person says "go on now".

use crate::{
    Aggregate, Author, Change, EventKind, Name, Ordered, Rejection, Rule, Run, State, Status, Timestamp,
};

/// Lets a paused or retrying run go on now. `request` is the caller's own name for the request.
#[derive(Debug, Clone, PartialEq)]
pub struct Resume {
    pub request: Option<Name>,
}

impl Rule for Resume {
    type Sender = Author;
    type Reply = Ordered;

    /// A request that was carried out before is answered with where the run stands: its first answer may have
    /// been lost.
    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<Ordered> {
        let request = self.request.as_ref();
        seen.was_requested(request).then(|| Ordered { status: seen.run.state.status(), already: true })
    }

    /// Makes a paused or retrying run ready; a sleep is never cut short.
    fn decide(&self, now: Timestamp, seen: &Aggregate, by: &Author) -> Result<Change<Ordered>, Rejection> {
        let run = &seen.run;
        let status = Status::Pending;
        match &run.state {
            State::Waiting(parked) if !parked.wait.can_be_hurried() => {
                Err(Rejection::NotResumable { run: run.id, status: run.state.status() })
            }
            State::Paused { .. } | State::Waiting(_) => {
                let run = Run { state: State::Ready { since: now }, crashes: 0, ..run.clone() };
                let (request, Author { by, reason }) = (self.request.clone(), by.clone());
                let event = EventKind::RunResumed { request, by, reason };
                Ok(Change::new(run, event, Ordered { status, already: false }))
            }
            State::Ready { .. } => Ok(Change::nothing(Ordered { status, already: true })),
            State::Leased(_) => Err(Rejection::NotResumable { run: run.id, status: run.state.status() }),
            State::Completed | State::Failed { .. } | State::Cancelled { .. } | State::TimedOut { .. } => {
                Err(Rejection::Ended { run: run.id, status: run.state.status() })
            }
        }
    }
}
