//! Events, as a batch writes them.

use kagzi_model::{Event, Name, RunId};

/// One event of one run, to be written.
#[derive(Debug, Clone)]
pub struct EventRow {
    pub namespace: Name,
    pub run: RunId,
    pub event: Event,
}
