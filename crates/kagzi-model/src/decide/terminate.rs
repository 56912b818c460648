//! Terminate: an operator gives the run up. It counts as a failure, so its handler runs.

use super::ending::{self, Ending};
use crate::{
    Aggregate, Author, Change, EventKind, Failure, Ordered, Rejection, Rule, State, Status, Timestamp, codes,
};

/// Ends the run as FAILED because an operator said so.
#[derive(Debug, Clone, PartialEq)]
pub struct Terminate;

impl Rule for Terminate {
    type Sender = Author;
    type Reply = Ordered;

    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<Ordered> {
        let terminated =
            matches!(&seen.run.state, State::Failed { failure } if *failure.code == *codes::TERMINATED);
        terminated.then_some(Ordered { status: Status::Failed, already: true })
    }

    /// Ends the run at once, whatever it waits for.
    fn decide(&self, now: Timestamp, seen: &Aggregate, by: &Author) -> Result<Change<Ordered>, Rejection> {
        let run = &seen.run;
        if run.state.finished() {
            return Err(Rejection::Ended { run: run.id, status: run.state.status() });
        }
        let why = if by.reason.is_empty() { "terminated by an operator" } else { &by.reason };
        let failure = Failure::new(codes::TERMINATED, why).non_retryable();
        let stands = Ordered { status: Status::Failed, already: false };
        let mut change = ending::end(now, seen, Ending::Failed, failure, stands);
        if let Some((EventKind::RunFailed { by: who, .. }, _)) = change.events.first_mut() {
            *who = Some(by.by.clone());
        }
        Ok(change)
    }

    fn takes_lease(&self) -> Option<&'static str> {
        Some("the run was terminated")
    }
}
