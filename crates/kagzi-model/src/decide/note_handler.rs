//! NoteHandler: the failed run remembers how its handler ended.

use crate::{Aggregate, Change, Done, EventKind, Rejection, Rule, RunId, Timestamp};

/// Notes on a failed run that its handler ended.
///
/// It is only ever a follow-up of the decision that ends the handler, in the same commit. That one recognises
/// its own repeat, so this one never comes twice and has no repeat to recognise.
#[derive(Debug, Clone, PartialEq)]
pub struct NoteHandler {
    pub handler: RunId,
    pub outcome: String,
}

impl Rule for NoteHandler {
    type Sender = ();
    type Reply = Done;

    /// Adds a line to the history. The run's state is untouched: it has ended.
    fn decide(&self, _: Timestamp, _: &Aggregate, (): &()) -> Result<Change<Done>, Rejection> {
        let event = EventKind::HandlerEnded { handler: self.handler, outcome: self.outcome.clone() };
        Ok(Change::event(event, None, Done::NOW))
    }
}
