//! Cancel: somebody asked for the end.

use super::ending;
use crate::{Aggregate, Author, Change, EventKind, Ordered, Rejection, Rule, Run, State, Status, Timestamp};

/// Ends the run because somebody asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Cancel;

impl Rule for Cancel {
    type Sender = Author;
    type Reply = Ordered;

    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<Ordered> {
        let status = seen.run.state.status();
        (status == Status::Cancelled).then_some(Ordered { status, already: true })
    }

    /// Ends the run at once, whatever it waits for; its worker's next write is refused.
    fn decide(&self, now: Timestamp, seen: &Aggregate, by: &Author) -> Result<Change<Ordered>, Rejection> {
        let run = &seen.run;
        if run.state.finished() {
            return Err(Rejection::Ended { run: run.id, status: run.state.status() });
        }
        let Author { by, reason } = by.clone();
        let state = State::Cancelled { reason: reason.clone() };
        let run = ending::ended(now, seen, Run { state, ..run.clone() });
        let mut follow = Vec::new();
        ending::tell(seen, &run, None, &mut follow);
        let stands = Ordered { status: Status::Cancelled, already: false };
        Ok(Change { follow, ..Change::new(run, EventKind::RunCancelled { by, reason }, stands) })
    }

    fn takes_lease(&self) -> Option<&'static str> {
        Some("the run was cancelled")
    }
}
