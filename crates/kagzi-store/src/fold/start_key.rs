//! What two starts have in common that must find the same run.

use kagzi_model::{Name, Payload, Run, RunId, StartRun};

/// What one start has in common with a second one that is to find its run: the business id with its
/// namespace, or for a run without one the run id.
#[derive(PartialEq, Eq, Hash)]
pub enum StartKey {
    Business(Name, Name),
    Run(RunId),
}

impl StartKey {
    pub fn of(start: &StartRun) -> StartKey {
        match &start.business_id {
            Some(id) => StartKey::Business(start.namespace.clone(), id.clone()),
            None => StartKey::Run(start.id),
        }
    }
}

/// A run that has a business id, and the input that it was started with.
pub struct Taken {
    pub id: RunId,
    pub input: Payload,
    /// Its row, unless it is in the cache: a start is compared with it, and needs no history. Or why it
    /// cannot be read.
    pub run: Option<Result<Box<Run>, String>>,
}
