//! What every rule is.

use crate::{Aggregate, Change, Ends, Rejection, Reply, Timestamp};

/// A rule decides one act. Its file holds the act's fields, how a repeat is recognised, and what it changes.
pub trait Rule {
    /// What stands behind the sender when the rule is asked: a worker's lease, which is checked before; the
    /// name and the reason of a person; nothing for the engine itself.
    type Sender;

    /// What the sender is told.
    type Reply: Into<Reply>;

    /// The answer to an act that was carried out before: then nothing is written. Asked before the sender is
    /// checked, because an answer may be lost after which the run went on; of a report only when its epoch is
    /// still the run's.
    fn repeat(&self, _now: Timestamp, _seen: &Aggregate) -> Option<Self::Reply> {
        None
    }

    /// What the act changes, or why it is refused.
    fn decide(
        &self,
        now: Timestamp,
        seen: &Aggregate,
        sender: &Self::Sender,
    ) -> Result<Change<Self::Reply>, Rejection>;

    /// Bytes of the payloads that the act carries.
    fn payload_bytes(&self) -> usize {
        0
    }

    /// What of a worker's work the act ends.
    fn ends(&self) -> Ends<'_> {
        Ends::Nothing
    }

    /// Why a worker that is not the sender loses its lease by the act.
    fn takes_lease(&self) -> Option<&'static str> {
        None
    }
}
