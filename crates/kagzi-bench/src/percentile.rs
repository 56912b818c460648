use std::time::Duration;

/// The smallest value that at least `percent` of all values do not exceed (nearest rank), in milliseconds.
pub fn percentile_ms(sorted: &[Duration], percent: f64) -> Option<f64> {
    debug_assert!(sorted.is_sorted());
    let rank = (percent / 100.0 * sorted.len() as f64).ceil() as usize;
    let value = sorted.get(rank.max(1) - 1)?;
    Some(round(value.as_secs_f64() * 1e3, 3))
}

pub fn round(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(range: std::ops::RangeInclusive<u64>) -> Vec<Duration> {
        range.map(Duration::from_millis).collect()
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let hundred = millis(1..=100);

        assert_eq!(percentile_ms(&hundred, 50.0), Some(50.0));
        assert_eq!(percentile_ms(&hundred, 99.0), Some(99.0));
        assert_eq!(percentile_ms(&hundred, 100.0), Some(100.0));
    }

    #[test]
    fn few_values_have_percentiles_too() {
        assert_eq!(percentile_ms(&millis(7..=7), 99.0), Some(7.0));
        assert_eq!(percentile_ms(&millis(1..=2), 50.0), Some(1.0));
        assert_eq!(percentile_ms(&millis(1..=2), 51.0), Some(2.0));
    }

    #[test]
    fn nothing_has_no_percentile() {
        assert_eq!(percentile_ms(&[], 50.0), None);
    }

    #[test]
    fn microseconds_are_kept() {
        assert_eq!(percentile_ms(&[Duration::from_nanos(1_234_567)], 50.0), Some(1.235));
    }
}
