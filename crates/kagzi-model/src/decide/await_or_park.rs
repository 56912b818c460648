//! AwaitOrPark: the code waits for a signal, and for nothing that could come before the server's answer.

use super::{await_signal::AwaitSignal, lease_guard, park, park::Park};
use crate::{Aggregate, Change, Ends, Lease, Rejection, Rule, Timestamp, Waited};

/// A wait, and a park for when nothing has come: what a run that waits for somebody needs anyway, in one
/// commit instead of two.
#[derive(Debug, Clone, PartialEq)]
pub struct AwaitOrPark {
    pub wait: AwaitSignal,
    /// As the worker would park when it has heard that nothing has come.
    pub park: Park,
}

impl Rule for AwaitOrPark {
    type Sender = Lease;
    type Reply = Waited;

    /// The answer was lost. Where the lease has ended meanwhile the sender is told to leave the run alone,
    /// also when the signal has come since: the run goes on with it under another lease.
    fn repeat(&self, now: Timestamp, seen: &Aggregate) -> Option<Waited> {
        let waited = self.wait.repeat(now, seen)?;
        Some(if lease_guard::given_up(seen) { Waited::Until(None) } else { waited })
    }

    /// Exactly what the wait and then the park would have made of it, one after the other.
    fn decide(&self, now: Timestamp, seen: &Aggregate, lease: &Lease) -> Result<Change<Waited>, Rejection> {
        let change = self.wait.decide(now, seen, lease)?;
        Ok(match change.reply {
            Waited::Until(_) => park::named_after(now, seen, change, &self.park),
            Waited::Taken { .. } | Waited::Elapsed | Waited::Silent | Waited::Closed => change,
        })
    }

    /// If nothing has come; nothing is executed while it is asked.
    fn ends(&self) -> Ends<'_> {
        Ends::Lease
    }
}
