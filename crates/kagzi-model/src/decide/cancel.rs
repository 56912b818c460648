//! Cancel: somebody asked for the end.

use super::ending;
use crate::{Aggregate, Author, Change, EventKind, Rejection, Rule, Run, Stands, State, Status, Timestamp};

/// Ends the run because somebody asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Cancel;

impl Rule for Cancel {
    type Sender = Author;
    type Reply = Stands;

    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<Stands> {
        let status = seen.run.state.status();
        (status == Status::Cancelled).then_some(Stands { status, already: true })
    }

    /// Ends the run at once, whatever it waits for; its worker's next write is refused.
    fn decide(&self, now: Timestamp, seen: &Aggregate, by: &Author) -> Result<Change<Stands>, Rejection> {
        let run = &seen.run;
        if run.state.finished() {
            return Err(Rejection::Ended { run: run.id, status: run.state.status() });
        }
        let Author { by, reason } = by.clone();
        let state = State::Cancelled { reason: reason.clone() };
        let run = Run { state, finished_at: Some(now), ..run.clone() };
        let follow = ending::note(&run).into_iter().collect();
        let stands = Stands { status: Status::Cancelled, already: false };
        Ok(Change { follow, ..Change::new(run, EventKind::RunCancelled { by, reason }, stands) })
    }

    fn takes_lease(&self) -> Option<&'static str> {
        Some("the run was cancelled")
    }
}
