//! What a batch did, for those who must hear of it.

use kagzi_model::RunId;

use crate::{Finished, LostLease, QueueKey, SignalNotice};

/// What the batch did that others must hear of after the commit.
#[derive(Default)]
pub struct Touched {
    pub finished: Vec<Finished>,
    pub lost: Vec<LostLease>,
    /// Runs that wait for a person from now on.
    pub paused: Vec<RunId>,
    /// Signals for runs that a worker executes.
    pub notices: Vec<SignalNotice>,
    /// Runs that answered a request.
    pub replied: Vec<RunId>,
    /// Runs of schedules that were made or go again after their end.
    pub going: Vec<RunId>,
    /// Runs whose row changed, for the claims that follow.
    pub rows: Vec<RunId>,
    /// (before, after) of every lease that began or ended.
    pub leases: Vec<LeaseMove>,
}

/// A lease that began or ended, and how the run did.
pub struct LeaseMove {
    pub worker: kagzi_model::WorkerId,
    pub run: RunId,
    pub key: QueueKey,
    pub begun: bool,
    pub completed: bool,
    pub failed: bool,
}
