//! Where a search through an index of due times begins.
//!
//! While anybody keeps a transaction open on PostgreSQL, entries of rows that have moved on stay in the
//! indexes, and a search from the beginning wades through all of them: claims become slower for as long as a
//! nightly dump takes. So a search begins where the last one found nothing any more. Rows may still appear
//! before that place, when a commit took long or another server let go of what it had locked: they are found
//! by a search of the whole, once a second, or less often when that takes long.

use std::time::{Duration, Instant};

use kagzi_model::Timestamp;

/// How far before the place a search begins: what was being committed when the last one looked.
const MARGIN_MS: i64 = 2_000;
/// How often the whole is searched, while that is cheap.
const WHOLE_EVERY: Duration = Duration::from_secs(1);
/// The share of time that searches of the whole may take, as a divisor.
const WHOLE_SHARE: u32 = 20;

/// The beginning of everything.
pub const WHOLE: Timestamp = Timestamp(i64::MIN);

/// The place, and when the whole was searched last.
#[derive(Debug, Clone, Copy)]
pub struct Frontier {
    begins: Timestamp,
    searched_whole: Option<Instant>,
    cost: Duration,
}

impl Default for Frontier {
    fn default() -> Self {
        Frontier { begins: WHOLE, searched_whole: None, cost: Duration::ZERO }
    }
}

impl Frontier {
    /// Where a search begins now.
    pub fn begins(&self, now: Instant) -> Timestamp {
        let pause = (self.cost * WHOLE_SHARE).max(WHOLE_EVERY);
        match self.searched_whole {
            Some(at) if now.duration_since(at) < pause => self.begins,
            Some(_) | None => WHOLE,
        }
    }

    /// A search that began at `from` has ended, and took so long.
    pub fn searched(&mut self, from: Timestamp, now: Instant, took: Duration) {
        if from == WHOLE {
            (self.searched_whole, self.cost) = (Some(now), took);
        }
    }

    /// Nothing is left before this time, as far as the last search saw.
    pub fn advance(&mut self, to: Timestamp) {
        self.begins = to.plus_ms(-MARGIN_MS);
    }

    /// Something waits at this time.
    pub fn no_later_than(&mut self, at: Timestamp) {
        self.begins = self.begins.min(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_begins_behind_the_place_and_once_a_second_with_everything() {
        let (mut frontier, began) = (Frontier::default(), Instant::now());
        assert_eq!(frontier.begins(began), WHOLE, "nothing is known yet");

        frontier.searched(WHOLE, began, Duration::from_millis(1));
        frontier.advance(Timestamp(10_000_000));
        assert_eq!(frontier.begins(began), Timestamp(8_000_000));
        frontier.no_later_than(Timestamp(5));
        assert_eq!(frontier.begins(began), Timestamp(5));

        assert_eq!(frontier.begins(began + WHOLE_EVERY), WHOLE);
    }

    #[test]
    fn searches_of_the_whole_take_no_more_than_their_share_of_the_time() {
        let (mut frontier, began) = (Frontier::default(), Instant::now());
        frontier.advance(Timestamp(10_000_000));

        frontier.searched(WHOLE, began, Duration::from_secs(1));

        assert_ne!(frontier.begins(began + Duration::from_secs(19)), WHOLE);
        assert_eq!(frontier.begins(began + Duration::from_secs(20)), WHOLE);
    }
}
