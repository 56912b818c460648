//! NoteHandler: the failed run remembers how its handler ended.

use crate::{Aggregate, Change, EventKind, Rejection, Reply, RunId};

/// Adds a line to the history. The run's state is untouched: it has ended.
pub fn decide(_: &Aggregate, handler: RunId, outcome: &str) -> Result<Change, Rejection> {
    let event = EventKind::HandlerEnded { handler, outcome: outcome.to_owned() };
    Ok(Change::event(event, None, Reply::Done { already: false }))
}
