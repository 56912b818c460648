//! What two starts have in common that must find the same run.

use kagzi_model::{Name, RunId, StartRun};

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
