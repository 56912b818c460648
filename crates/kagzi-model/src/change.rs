//! What a decision changes.

use crate::{Command, EventKind, Payload, Reply, Run};

/// The answer to an accepted command. Empty events and no run mean that nothing is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Change<R = Reply> {
    /// The new row, when it changed.
    pub run: Option<Run>,
    /// New lines of history, in order; the store numbers them.
    pub events: Vec<(EventKind, Option<Payload>)>,
    pub reply: R,
    /// Commands on other runs that belong to this decision: they are applied in the same commit.
    pub follow: Vec<Command>,
}

impl<R> Change<R> {
    /// Nothing to write: the command was carried out before.
    pub fn nothing(reply: R) -> Self {
        Change { run: None, events: Vec::new(), reply, follow: Vec::new() }
    }

    /// A new row and one line of history.
    pub fn new(run: Run, event: EventKind, reply: R) -> Self {
        Change { run: Some(run), events: vec![(event, None)], reply, follow: Vec::new() }
    }

    /// One line of history; the row stays as it is.
    pub fn event(event: EventKind, payload: Option<Payload>, reply: R) -> Self {
        Change { run: None, events: vec![(event, payload)], reply, follow: Vec::new() }
    }

    /// The same change with another answer.
    pub fn replying<S>(self, reply: S) -> Change<S> {
        Change { run: self.run, events: self.events, reply, follow: self.follow }
    }
}

impl<R: Into<Reply>> Change<R> {
    /// The change as it is handed out, with the answer among all answers.
    #[inline(always)]
    pub fn answered(self) -> Change {
        Change { run: self.run, events: self.events, reply: self.reply.into(), follow: self.follow }
    }
}
