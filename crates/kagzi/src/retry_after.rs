//! The Retry-After header of HTTP (RFC 9110, 10.2.3): seconds, or a date in one of three old formats.

use std::time::{Duration, SystemTime};

use crate::limits::RETRY_AFTER_MAX;

/// How long the header asks to wait, seen from `now`; a date that has passed is no wait. None when it says
/// nothing readable. Clamped, because a receiver's typing error must not park a run for a year.
pub(crate) fn delay(header: &str, now: SystemTime) -> Option<Duration> {
    let header = header.trim();
    let delay = if !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit()) {
        // Too many digits for a number are still "very long".
        Duration::from_secs(header.parse().unwrap_or(u64::MAX))
    } else {
        date(header)?.duration_since(now).unwrap_or(Duration::ZERO)
    };
    Some(delay.min(RETRY_AFTER_MAX))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` or `Sun Nov  6 08:49:37 1994`.
fn date(text: &str) -> Option<SystemTime> {
    let words: Vec<&str> = text.split([' ', ',', '-']).filter(|word| !word.is_empty()).collect();
    let (day, month, year, time) = match *words.as_slice() {
        [_, day, month, year, time, "GMT"] => (day, month, year, time),
        [_, month, day, time, year] => (day, month, year, time),
        _ => return None,
    };
    let day = number(day, 1..=31)?;
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))? as u64 + 1;
    let year = match (year.len(), number(year, 0..=9999)?) {
        (4, year) => year,
        // A receiver that still sends two digits means a time near ours.
        (2, year) => year + if year < 70 { 2000 } else { 1900 },
        _ => return None,
    };
    let mut parts = time.split(':');
    let hour = number(parts.next()?, 0..=23)?;
    let minute = number(parts.next()?, 0..=59)?;
    // 60 is a leap second.
    let second = number(parts.next()?, 0..=60)?;
    if parts.next().is_some() || year < 1970 {
        return None;
    }
    let seconds = ((days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

fn number(text: &str, allowed: std::ops::RangeInclusive<u64>) -> Option<u64> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok().filter(|number| allowed.contains(number))
}

/// Counts with years that begin in March, so that the leap day is the last of its year.
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let in_years = year * 365 + year / 4 - year / 100 + year / 400;
    in_years + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1994-11-06T08:49:37Z, the example of the RFC.
    const EXAMPLE: u64 = 784_111_777;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn seconds_are_read_and_clamped_to_a_day() {
        let seconds = |header| delay(header, at(0)).map(|delay| delay.as_secs());

        assert_eq!(seconds("120"), Some(120));
        assert_eq!(seconds(" 0 "), Some(0));
        assert_eq!(seconds("86401"), Some(86_400));
        assert_eq!(seconds("99999999999999999999999"), Some(86_400));
    }

    #[test]
    fn all_three_date_formats_mean_the_same_time() {
        let formats =
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"];

        for header in formats {
            assert_eq!(delay(header, at(EXAMPLE - 30)), Some(Duration::from_secs(30)), "{header}");
            assert_eq!(delay(header, at(EXAMPLE + 30)), Some(Duration::ZERO), "{header} has passed");
            assert_eq!(delay(header, at(0)), Some(RETRY_AFTER_MAX), "{header} is far away");
        }
    }

    #[test]
    fn dates_are_counted_over_leap_days() {
        let days = |header| date(header).map(|at| at.duration_since(SystemTime::UNIX_EPOCH).unwrap());

        assert_eq!(days("Thu, 01 Jan 1970 00:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(days("Thu, 29 Feb 2024 12:00:00 GMT"), Some(Duration::from_secs(1_709_208_000)));
        assert_eq!(days("Fri, 01 Mar 2024 00:00:00 GMT"), Some(Duration::from_secs(1_709_251_200)));
        assert_eq!(days("Wednesday, 01-Jan-25 00:00:00 GMT"), Some(Duration::from_secs(1_735_689_600)));
    }

    #[test]
    fn nonsense_is_not_read() {
        let nonsense = [
            "",
            "soon",
            "-5",
            "+5",
            "1.5",
            "12 apples",
            "Sun, 32 Nov 1994 08:49:37 GMT",
            "Sun, 06 Foo 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Nov 1960 08:49:37 GMT",
        ];

        for header in nonsense {
            assert_eq!(delay(header, at(0)), None, "{header:?}");
        }
    }
}
