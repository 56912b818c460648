//! SetValue: the code publishes something that others read without a worker. Not told to the function, so no
//! part of what a replay repeats.

use super::history_bound;
use crate::{
    Aggregate, Change, Done, EventKind, Lease, Name, Payload, Rejection, Rule, Timestamp,
    limits::{PROGRESS_EVENTS_MAX, VALUES_MAX},
};

/// Publishes a value of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct SetValue {
    pub name: Name,
    /// The code's own count of how often it has set this name. A replay sets what was set before: that is
    /// recognised by it, whatever its codecs make of the same value. 0 = it is set in any case.
    pub number: u64,
    pub value: Payload,
}

impl Rule for SetValue {
    type Sender = Lease;
    type Reply = Done;

    /// The last value of a name counts. Where the history has no room it is left out: the value is then
    /// older than it could be, and the run goes on.
    fn decide(&self, _: Timestamp, seen: &Aggregate, _: &Lease) -> Result<Change<Done>, Rejection> {
        let SetValue { name, number, value } = self;
        let values = seen.mail.as_deref().map(|mail| mail.values());
        let known = values.and_then(|values| values.get(name));
        let full = seen.last_seq >= PROGRESS_EVENTS_MAX || !history_bound::fits(seen, value.data.len());
        let next = known.map_or(1, |known| known.saturating_add(1));
        let number = if *number == 0 { next } else { *number };
        if full || known.is_some_and(|known| *known >= number) {
            return Ok(Change::nothing(Done::BEFORE));
        }
        if known.is_none() && values.is_some_and(|values| values.len() >= VALUES_MAX) {
            let (run, name) = (seen.run.id, name.clone());
            return Err(Rejection::TooManyValues { run, name, max: VALUES_MAX });
        }
        let event = EventKind::ValueSet { name: name.clone(), number };
        Ok(Change::event(event, Some(value.clone()), Done::NOW))
    }

    fn payload_bytes(&self) -> usize {
        self.value.data.len()
    }
}
