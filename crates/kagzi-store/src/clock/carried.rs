//! Time that steady time carries on from a known point, and how it follows an authority that disagrees.

use std::time::Duration;

use kagzi_model::Timestamp;

/// A move forward by more than this is a leap: a machine that was suspended, or a clock that was set. Less is
/// ordinary drift.
pub const LEAP_MIN: Duration = Duration::from_secs(1);

/// While the authority is behind, one part in so many is left out: an hour is made up for in ten hours, and
/// no timer is late by more than a ninth of its length. A clock that stood still instead would hold up every
/// sleep, retry and lease for the whole hour.
const SLEW_PART: u32 = 10;

/// Carries time. Never goes back, never stands still.
#[derive(Debug, Clone, Copy)]
pub struct Carried {
    /// Steady time at which `at` was shown.
    anchor: Duration,
    at: Timestamp,
    /// How far `at` was ahead of the authority: made up for by running slowly.
    excess: Duration,
}

/// What a look at the authority led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Correction {
    /// It agrees, or nearly.
    Kept,
    /// It was ahead by so much: time moved there.
    Leapt(Duration),
    /// It is behind by so much: time runs slowly until it has caught up.
    Slowed(Duration),
}

impl Carried {
    /// Begins at `at`, which is shown at this moment of steady time.
    pub fn new(steady: Duration, at: Timestamp) -> Carried {
        Carried { anchor: steady, at, excess: Duration::ZERO }
    }

    /// The time at a moment of steady time.
    pub fn now(&self, steady: Duration) -> Timestamp {
        let elapsed = steady.saturating_sub(self.anchor);
        let slow = elapsed - elapsed / SLEW_PART;
        self.at + slow.max(elapsed.saturating_sub(self.excess))
    }

    /// What the authority is thought to show; at most [`now`](Carried::now).
    pub fn calendar(&self, steady: Duration) -> Timestamp {
        let elapsed = steady.saturating_sub(self.anchor);
        let truth = Timestamp(self.at.0.saturating_sub(micros(self.excess))) + elapsed;
        truth.min(self.now(steady))
    }

    /// The authority shows `truth` at this moment of steady time.
    pub fn correct(&mut self, steady: Duration, truth: Timestamp) -> Correction {
        let now = self.now(steady);
        let (ahead, behind) = (truth - now, now - truth);
        *self = Carried { anchor: steady, at: now.max(truth), excess: behind };
        if ahead > LEAP_MIN {
            Correction::Leapt(ahead)
        } else if behind > LEAP_MIN {
            Correction::Slowed(behind)
        } else {
            Correction::Kept
        }
    }

    /// Goes on from `newest` if that is later, and runs slowly until the authority has caught up. Answers
    /// with how much later it was.
    pub fn not_before(&mut self, steady: Duration, newest: Timestamp) -> Duration {
        let (now, truth) = (self.now(steady), self.calendar(steady));
        let moved = newest - now;
        if !moved.is_zero() {
            *self = Carried { anchor: steady, at: newest, excess: newest - truth };
        }
        moved
    }
}

fn micros(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_secs(3600);
    const START: Timestamp = Timestamp::from_millis(1_900_000_000_000);

    fn carried() -> Carried {
        Carried::new(5 * SECOND, START)
    }

    #[test]
    fn it_goes_on_with_steady_time() {
        assert_eq!(carried().now(5 * SECOND), START);
        assert_eq!(carried().now(65 * SECOND), START + 60 * SECOND);
    }

    #[test]
    fn an_authority_that_is_ahead_is_followed_at_once() {
        let mut carried = carried();

        let correction = carried.correct(6 * SECOND, START + HOUR + SECOND);

        assert_eq!(correction, Correction::Leapt(HOUR));
        assert_eq!(carried.now(6 * SECOND), START + HOUR + SECOND);
    }

    #[test]
    fn an_authority_that_is_behind_is_waited_for_without_standing_still() {
        let mut carried = carried();
        let set_back = Timestamp(START.0 - micros(HOUR));

        let correction = carried.correct(5 * SECOND, set_back);

        assert_eq!(correction, Correction::Slowed(HOUR));
        assert_eq!(carried.now(5 * SECOND), START, "it never goes back");
        assert_eq!(carried.now(15 * SECOND), START + 9 * SECOND, "it goes on");
        assert_eq!(carried.calendar(15 * SECOND), set_back + 10 * SECOND);
        // In ten hours an hour is made up for; from then on both agree.
        assert_eq!(carried.now(5 * SECOND + 10 * HOUR), set_back + 10 * HOUR);
        assert_eq!(carried.now(5 * SECOND + 20 * HOUR), set_back + 20 * HOUR);
        assert_eq!(carried.calendar(5 * SECOND + 20 * HOUR), set_back + 20 * HOUR);
    }

    #[test]
    fn drift_of_some_milliseconds_is_no_leap() {
        let mut carried = carried();

        assert_eq!(carried.correct(5 * SECOND, START + SECOND / 2), Correction::Kept);
        assert_eq!(carried.now(5 * SECOND), START + SECOND / 2);
        assert_eq!(carried.correct(5 * SECOND, START), Correction::Kept);
        assert_eq!(carried.now(5 * SECOND), START + SECOND / 2, "it never goes back");
        assert_eq!(carried.now(10 * SECOND), START + 5 * SECOND, "and has caught up after five seconds");
    }

    #[test]
    fn it_begins_where_the_database_ends_if_that_is_later() {
        let mut carried = carried();

        assert_eq!(carried.not_before(5 * SECOND, Timestamp(0)), Duration::ZERO);
        assert_eq!(carried.not_before(5 * SECOND, START + HOUR), HOUR);

        assert_eq!(carried.now(5 * SECOND), START + HOUR);
        assert_eq!(carried.calendar(5 * SECOND), START);
        assert_eq!(carried.now(15 * SECOND), START + HOUR + 9 * SECOND);
    }

    #[test]
    fn over_any_corrections_it_never_goes_back() {
        let mut random = 42_u64;
        let mut carried = carried();
        let (mut steady, mut last) = (5 * SECOND, START);
        for _ in 0..10_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            steady += Duration::from_micros((random >> 40) + 1);
            let shift = i64::try_from(random >> 30).unwrap() - (1 << 33);
            carried.correct(steady, Timestamp(START.0 + shift));
            assert!(carried.now(steady) >= last && carried.calendar(steady) <= carried.now(steady));
            last = carried.now(steady);
            assert!(carried.now(steady + SECOND) > last, "it does not stand still");
        }
    }
}
