//! What a journal says of one step.

use crate::{Failure, Finality, Name, Payload, RunId, Timestamp};

/// What is recorded of one step, with its result.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalEntry {
    pub path: Name,
    pub position: u32,
    pub attempts: u32,
    pub state: JournalState,
    /// Its place among all that the function was told of, from 1; 0 as long as the step has not ended for
    /// good. Replay tells the function in this order.
    pub order: u32,
    /// What an unfinished attempt said about how far it was.
    pub progress: Option<Payload>,
    /// A wait for a promise ended because its signs of life stopped.
    pub silent: bool,
    /// The id of the signal that a wait took.
    pub signal: Option<Name>,
    /// The run that the step has started, if it started one.
    pub child: Option<RunId>,
    /// The events whose payloads are the result and the progress: an outline has the numbers and not the
    /// payloads, which are fetched when they are needed.
    pub sources: Sources,
}

/// Where the payloads of an entry are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sources {
    pub result: Option<u64>,
    pub progress: Option<u64>,
}

/// Where the step stands for replay.
#[derive(Debug, Clone, PartialEq)]
pub enum JournalState {
    /// It began and told of progress, but no attempt has ended.
    Begun,
    Completed {
        result: Payload,
    },
    Failed {
        failure: Failure,
        /// Code may ask for it, so replay must answer what the first execution heard.
        finality: Finality,
    },
    Retry {
        at: Timestamp,
        failure: Failure,
    },
    Sleeping {
        until: Timestamp,
    },
    Slept,
    /// It waits for a signal; `is_there` when one has come that it has not taken.
    Waiting {
        channel: Name,
        until: Option<Timestamp>,
        is_there: bool,
    },
}

impl JournalState {
    pub(super) fn is_over(&self) -> bool {
        match self {
            JournalState::Completed { .. } | JournalState::Failed { .. } | JournalState::Slept => true,
            JournalState::Begun
            | JournalState::Retry { .. }
            | JournalState::Sleeping { .. }
            | JournalState::Waiting { .. } => false,
        }
    }
}
