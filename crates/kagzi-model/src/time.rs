//! Points in time and lengths of time, as whole numbers.

use std::{fmt, ops, time::Duration};

use serde::{Deserialize, Serialize};

/// Microseconds since 1970 in UTC: fine enough to order events, exact in every database.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

/// A length of time in milliseconds, never negative in practice.
pub type Millis = i64;

impl Timestamp {
    /// The latest time we can say; adding to it stays there.
    pub const MAX: Timestamp = Timestamp(i64::MAX);

    /// Builds a timestamp from milliseconds since 1970.
    pub const fn from_millis(ms: i64) -> Self {
        Timestamp(ms.saturating_mul(1000))
    }

    /// This time plus `ms`, or the end of time.
    pub const fn plus_ms(self, ms: Millis) -> Self {
        Timestamp(self.0.saturating_add(ms.saturating_mul(1000)))
    }

    /// Milliseconds from `now` until this time, rounded up so that a waiter is never early; 0 when past.
    pub const fn remaining_ms(self, now: Timestamp) -> Millis {
        let us = self.0.saturating_sub(now.0);
        if us <= 0 { 0 } else { us / 1000 + (us % 1000 != 0) as i64 }
    }
}

impl ops::Add<Duration> for Timestamp {
    type Output = Timestamp;

    fn add(self, length: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add(i64::try_from(length.as_micros()).unwrap_or(i64::MAX)))
    }
}

impl ops::Sub<Timestamp> for Timestamp {
    type Output = Duration;

    /// How long after `earlier` this is; zero when it is before.
    fn sub(self, earlier: Timestamp) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}us", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_time_is_rounded_up_so_nobody_wakes_early() {
        assert_eq!(Timestamp(1001).remaining_ms(Timestamp(0)), 2);
        assert_eq!(Timestamp(1000).remaining_ms(Timestamp(0)), 1);
        assert_eq!(Timestamp(0).remaining_ms(Timestamp(5)), 0);
    }

    #[test]
    fn adding_saturates_at_the_end_of_time() {
        assert_eq!(Timestamp(1).plus_ms(i64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MAX + Duration::from_secs(1), Timestamp::MAX);
    }
}
