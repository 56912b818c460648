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

/// A time as everybody writes it: RFC 3339 in UTC, with a fraction only where there is one.
pub fn rfc3339(at: Timestamp) -> String {
    jiff::Timestamp::from_microsecond(at.0).map_or_else(|_| at.0.to_string(), |at| at.to_string())
}

/// A time for people: RFC 3339 in UTC, to the millisecond.
pub fn moment(at: Timestamp) -> String {
    jiff::Timestamp::from_microsecond(at.0).map_or_else(|_| "the end of time".into(), |at| format!("{at:.3}"))
}

/// How far away a time is, for people.
pub fn in_time(now: Timestamp, at: Timestamp) -> String {
    if at <= now { "now".into() } else { format!("in {}", ago(at, now)) }
}

/// How long ago a time was, for people: in the unit that says enough.
pub fn ago(now: Timestamp, then: Timestamp) -> String {
    let passed = now - then;
    match passed.as_secs() {
        0 => format!("{} ms", passed.as_millis()),
        s @ 1..=119 => format!("{s} s"),
        s @ 120..=7199 => format!("{} min", s / 60),
        s => format!("{} h", s / 3600),
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
    fn lengths_of_time_read_naturally() {
        let at = |secs: i64| Timestamp::from_millis(secs * 1000);

        assert_eq!(ago(Timestamp(1_500), Timestamp(0)), "1 ms");
        assert_eq!(ago(at(90), at(0)), "90 s");
        assert_eq!(ago(at(600), at(0)), "10 min");
        assert_eq!(in_time(at(0), at(3)), "in 3 s");
        assert_eq!(in_time(at(3), at(0)), "now");
    }

    #[test]
    fn times_are_written_as_rfc_3339() {
        assert_eq!(moment(Timestamp(1_700_000_000_123_456)), "2023-11-14T22:13:20.123Z");
        assert_eq!(rfc3339(Timestamp(1_500_000)), "1970-01-01T00:00:01.5Z");
    }

    #[test]
    fn adding_saturates_at_the_end_of_time() {
        assert_eq!(Timestamp(1).plus_ms(i64::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MAX + Duration::from_secs(1), Timestamp::MAX);
    }
}
