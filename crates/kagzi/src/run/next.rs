//! What the executor and the turns of a run say to each other.

use std::sync::Arc;

use kagzi_proto::v1::{self, report};

use crate::run::slot::Slot;

/// The one report about what the function is told that the server has not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnItsWay {
    Nothing,
    Results,
    Ask,
}

/// What follows the answer to an ask.
pub(crate) enum Answered {
    /// These waited for it.
    Settled(Vec<Arc<Slot>>),
    /// The function dropped the operation before it could hear, and the record has it: that must be taken
    /// out.
    Unheard,
}

/// What the executor does when the function stands still.
pub(crate) enum Next {
    /// This operation has its turn.
    Release(Arc<Slot>),
    /// This is sent, and the operation hears the answer.
    Ask(Arc<Slot>, report::Body),
    /// It was answered, and the function dropped it before it could hear.
    Close(Arc<Slot>),
    /// These results are sent.
    Send(Vec<v1::StepRecorded>),
    /// The replay is over; these waited for that.
    Live(Vec<Arc<Slot>>),
    /// The function should have called what is recorded at this place; 0 = something that has not ended.
    Stalled(u32),
    Nothing,
}
