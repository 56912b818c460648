//! Runs that continue in place, as a batch writes them.

use std::ops::Range;

use kagzi_model::RunKey;

/// Rows of old generations that are deleted in the commit in which a run continues. What is left goes with
/// the sweep of retention.
pub const OLD_ROWS_MAX: usize = 200;

/// A run has begun a new generation. The one before it is kept, for people; those before that go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continued {
    pub run: RunKey,
    pub generation: u32,
    /// Its first event; a row of its own begins with it.
    pub first_seq: u64,
    /// Events below this number go: the first one of the generation before. The very first row stays,
    /// because a start with the same business id is compared with the input in it.
    pub below: u64,
    /// But for the rows with these: signals that nobody has taken. In order.
    pub kept: Vec<u64>,
}

impl Continued {
    /// Whether a row with these events goes.
    pub fn drops(&self, events: &Range<u64>) -> bool {
        let next = self.kept.partition_point(|seq| *seq < events.start);
        let holds_one = self.kept.get(next).is_some_and(|seq| *seq < events.end);
        events.start > 1 && events.start < self.below && !holds_one
    }
}
