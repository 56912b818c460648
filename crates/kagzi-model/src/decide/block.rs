//! Block: code and record disagree, so a person must look.

use crate::{Aggregate, Change, Done, Ends, EventKind, Lease, Name, Rejection, Rule, Run, State, Timestamp};

/// Pauses the run because code and record disagree.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    pub message: String,
}

impl Rule for Block {
    type Sender = Lease;
    type Reply = Done;

    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<Done> {
        matches!(seen.run.state, State::Paused { .. }).then_some(Done::BEFORE)
    }

    /// Pauses the run. Going on would run steps again or skip them.
    fn decide(&self, now: Timestamp, seen: &Aggregate, _: &Lease) -> Result<Change<Done>, Rejection> {
        Ok(paused(now, seen, self.message.clone(), Done::NOW))
    }

    fn ends(&self) -> Ends<'_> {
        Ends::Lease
    }
}

/// The run, paused because it cannot be replayed.
pub fn paused<R>(now: Timestamp, seen: &Aggregate, why: String, reply: R) -> Change<R> {
    let by = Name::from("replay");
    let state = State::Paused { by: by.clone(), why: why.clone(), since: now };
    let run = Run { state, ..seen.run.clone() };
    Change::new(run, EventKind::RunPaused { by, why }, reply)
}
