//! What the log says of runs that were given back.

use kagzi_model::{Run, State};

/// A worker that leaves gives its runs back once. A run that comes back again and again is an operator's
/// business.
pub fn log_release(run: &Run, why: &str) {
    let (namespace, id) = (&run.namespace, run.id);
    match &run.state {
        State::Waiting(parked) => {
            tracing::warn!(%namespace, run = %id, in_a_row = parked.attempt, why, "run given back without \
                progress, it waits");
        }
        State::Paused { .. } => {
            tracing::error!(%namespace, run = %id, why, "run given back too often without progress, \
                quarantined");
        }
        State::Ready { .. } => tracing::debug!(%namespace, run = %id, why, "run given back"),
        State::Leased(_) => {}
        State::Completed | State::Failed { .. } | State::Cancelled { .. } | State::TimedOut { .. } => {}
    }
}
