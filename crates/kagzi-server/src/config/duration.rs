//! Durations as people write them: `500ms`, `30s`, `1m30s`, `90d`.

use std::time::Duration;

const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Reads a duration. Every number has a unit, because `30` alone has been misread too often.
pub fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total_ms: u64 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let number: u64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let letters = rest.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (_, unit_ms) = UNITS.iter().find(|(name, _)| *name == &rest[..letters])?;
        rest = &rest[letters..];
        total_ms = total_ms.checked_add(number.checked_mul(*unit_ms)?)?;
    }
    Some(Duration::from_millis(total_ms))
}

/// The shortest way to write it with one unit.
pub fn show(duration: Duration) -> String {
    let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    if ms == 0 {
        return "0s".into();
    }
    let (name, unit_ms) =
        UNITS.iter().find(|(_, unit_ms)| ms.is_multiple_of(*unit_ms)).expect("milliseconds divide all");
    format!("{}{name}", ms / unit_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_read_back() {
        for (text, seconds) in [("30s", 30), ("10m", 600), ("1h", 3600), ("90d", 7_776_000)] {
            assert_eq!(parse(text), Some(Duration::from_secs(seconds)));
            assert_eq!(show(Duration::from_secs(seconds)), text);
        }
        assert_eq!(parse("1m30s"), Some(Duration::from_secs(90)));
        assert_eq!(show(Duration::from_millis(1500)), "1500ms");
    }

    #[test]
    fn a_number_without_a_unit_is_no_duration() {
        for text in ["", "30", "s", "-5s", "soon", "1.5s", "3 weeks", "99999999999999999999s"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
