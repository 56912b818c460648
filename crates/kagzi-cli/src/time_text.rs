//! Times as people and scripts read them: UTC in RFC 3339, and in tables also how long ago.

use jiff::{SignedDuration, Timestamp};

/// The only place where this crate reads the wall clock.
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// A time as the SDK tells it.
pub fn of(time: Option<std::time::SystemTime>) -> Option<Timestamp> {
    time.and_then(|time| Timestamp::try_from(time).ok())
}

/// A moment in the past as people write it: how long ago (`2h`, `3d`), or a time.
pub fn parse_past(text: &str) -> Result<Timestamp, String> {
    if let Ok(time) = text.parse() {
        return Ok(time);
    }
    let wrong =
        || format!("`{text}` is no time; write 30m, 2h or 3d for how long ago, or 2026-11-15T12:00:00Z");
    // Jiff has no days of a fixed length; ours are 24 hours.
    let hours = text
        .strip_suffix('d')
        .and_then(|days| days.parse::<i64>().ok())
        .and_then(|days| days.checked_mul(24));
    let ago = match hours {
        Some(hours) => SignedDuration::try_from_hours(hours).ok_or_else(wrong)?,
        None => text.parse::<SignedDuration>().map_err(|_| wrong())?,
    };
    now().checked_sub(ago).map_err(|_| wrong())
}

/// `2026-11-15T23:41:00Z (3s ago)`. Milliseconds are kept, finer digits are noise to a person.
pub fn absolute_and_relative(time: Timestamp, now: Timestamp) -> String {
    let rounded = Timestamp::from_millisecond(time.as_millisecond()).unwrap_or(time);
    format!("{rounded} ({})", relative(time, now))
}

pub fn relative(time: Timestamp, now: Timestamp) -> String {
    let distance = now.duration_since(time);
    match distance.is_negative() {
        false => format!("{} ago", rough(distance)),
        true => format!("in {}", rough(distance.abs())),
    }
}

/// Two units are enough: `3s`, `4m10s`, `2h5m`, `3d4h`.
pub fn rough(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match seconds {
        0 => format!("{}ms", duration.as_millis()),
        1..60 => format!("{seconds}s"),
        60..3_600 => format!("{minutes}m{}s", seconds % 60),
        3_600..86_400 => format!("{hours}h{}m", minutes % 60),
        _ => format!("{days}d{}h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_with_its_distance_from_now() {
        let now: Timestamp = "2026-11-15T12:00:03Z".parse().unwrap();

        let past = absolute_and_relative("2026-11-15T12:00:00.123456789Z".parse().unwrap(), now);
        let future = absolute_and_relative("2026-11-15T14:05:04Z".parse().unwrap(), now);

        assert_eq!(past, "2026-11-15T12:00:00.123Z (2s ago)");
        assert_eq!(future, "2026-11-15T14:05:04Z (in 2h5m)");
    }

    #[test]
    fn a_past_moment_is_a_time_or_how_long_ago() {
        let day_ago = parse_past("1d").unwrap();

        assert_eq!(parse_past("2026-11-15T12:00:00Z").unwrap().to_string(), "2026-11-15T12:00:00Z");
        assert!(now().duration_since(day_ago) >= SignedDuration::from_hours(24));
        assert!(now().duration_since(parse_past("2h").unwrap()) < SignedDuration::from_hours(3));
        assert!(parse_past("yesterday").unwrap_err().contains("how long ago"));
    }

    #[test]
    fn durations_are_rounded_to_two_units() {
        let cases = [(0, "0ms"), (59, "59s"), (250, "4m10s"), (7_500, "2h5m"), (273_600, "3d4h")];

        for (seconds, expected) in cases {
            assert_eq!(rough(SignedDuration::from_secs(seconds)), expected);
        }
    }
}
