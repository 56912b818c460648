//! Resume: a person says "go on now".

use crate::{
    Aggregate, Author, Change, EventKind, Name, Rejection, Rule, Run, Stands, State, Status, Timestamp,
};

/// Lets a paused or retrying run go on now. `request` is the caller's own name for the request.
#[derive(Debug, Clone, PartialEq)]
pub struct Resume {
    pub request: Option<Name>,
}

impl Rule for Resume {
    type Sender = Author;
    type Reply = Stands;

    /// A request that was carried out before is answered with where the run stands: its first answer may have been
    /// lost.
    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<Stands> {
        let request = self.request.as_ref();
        seen.was_requested(request).then(|| Stands { status: seen.run.state.status(), already: true })
    }

    /// Makes a paused or retrying run ready; a sleep is never cut short.
    fn decide(&self, now: Timestamp, seen: &Aggregate, by: &Author) -> Result<Change<Stands>, Rejection> {
        let run = &seen.run;
        let status = Status::Pending;
        match &run.state {
            State::Paused { .. } | State::Retry { .. } => {
                let run = Run { state: State::Ready { since: now }, crashes: 0, ..run.clone() };
                let (request, Author { by, reason }) = (self.request.clone(), by.clone());
                let event = EventKind::RunResumed { request, by, reason };
                Ok(Change::new(run, event, Stands { status, already: false }))
            }
            State::Ready { .. } => Ok(Change::nothing(Stands { status, already: true })),
            State::Leased(_) | State::Timer { .. } => {
                Err(Rejection::NotResumable { run: run.id, status: run.state.status() })
            }
            State::Completed | State::Failed { .. } | State::Cancelled { .. } | State::TimedOut { .. } => {
                Err(Rejection::Ended { run: run.id, status: run.state.status() })
            }
        }
    }
}
