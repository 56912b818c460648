//! Renew: a heartbeat named this run.

use crate::{Aggregate, Change, Done, Lease, Rejection, Rule, Run, State, Timestamp};

/// Keeps the lease until `until`.
#[derive(Debug, Clone, PartialEq)]
pub struct Renew {
    pub until: Timestamp,
}

impl Rule for Renew {
    type Sender = Lease;
    type Reply = Done;

    /// Moves the lease's end to `until`, never adding up and never back.
    #[inline(always)]
    fn decide(&self, _: Timestamp, seen: &Aggregate, held: &Lease) -> Result<Change<Done>, Rejection> {
        if self.until <= held.until {
            return Ok(Change::nothing(Done::BEFORE));
        }
        let state = State::Leased(Lease { until: self.until, ..held.clone() });
        let run = Run { state, ..seen.run.clone() };
        // No event: a renewal is not history, and there would be one every few seconds.
        Ok(Change { run: Some(run), ..Change::nothing(Done::NOW) })
    }
}
