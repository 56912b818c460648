//! When a schedule fires: by the calendar, or every so often.

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use super::{
    calendar::Calendar,
    cron::{Cron, CronError},
};
use crate::{Millis, Name, Timestamp, limits};

/// What the user wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum Timing {
    Cron {
        expression: String,
        time_zone: Name,
    },
    /// Every so often, counted from the beginning of 1970 in UTC plus `phase_ms`: every hour is on the hour.
    Interval {
        every_ms: Millis,
        phase_ms: Millis,
    },
}

/// A timing that was understood.
#[derive(Debug, Clone)]
pub enum Timetable {
    Calendar(Box<Calendar>),
    Every { every_us: i64, anchor: Timestamp },
}

/// Why a timing is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimingError {
    #[error("cron \"{expression}\" {error}")]
    Cron { expression: String, error: CronError },
    #[error("time_zone \"{0}\" is not known; use a name of the IANA database, e.g. Europe/Berlin or UTC")]
    TimeZone(Name),
    #[error("interval is {0} ms; it must be between 1 s and ten years")]
    Interval(Millis),
    #[error("phase is {phase_ms} ms; it must not be negative and must be below the interval, {every_ms} ms")]
    Phase { phase_ms: Millis, every_ms: Millis },
}

impl Timing {
    /// Understands the timing, or says what is wrong with it.
    pub fn timetable(&self) -> Result<Timetable, TimingError> {
        match self {
            Timing::Cron { expression, time_zone } => {
                let wrong = |error| TimingError::Cron { expression: expression.clone(), error };
                let cron = Cron::parse(expression).map_err(wrong)?;
                // Of the bundled database only: the answer must not depend on the machine.
                let zone = TimeZone::get(time_zone).map_err(|_| TimingError::TimeZone(time_zone.clone()))?;
                Ok(Timetable::Calendar(Box::new(Calendar { cron, zone })))
            }
            Timing::Interval { every_ms, phase_ms } => {
                let (every_ms, phase_ms) = (*every_ms, *phase_ms);
                if !(limits::INTERVAL_MS_MIN..=limits::WAIT_MS_MAX).contains(&every_ms) {
                    return Err(TimingError::Interval(every_ms));
                }
                if !(0..every_ms).contains(&phase_ms) {
                    return Err(TimingError::Phase { phase_ms, every_ms });
                }
                Ok(Timetable::Every { every_us: every_ms * 1000, anchor: Timestamp::from_millis(phase_ms) })
            }
        }
    }
}

impl Timetable {
    /// The first time after `after`.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Timetable::Calendar(calendar) => calendar.next_after(after),
            Timetable::Every { every_us, anchor } => {
                let steps = steps(*every_us, *anchor, after).checked_add(1)?;
                anchor.0.checked_add(every_us.checked_mul(steps.max(0))?).map(Timestamp)
            }
        }
    }

    /// How many times are in `(after, to]`.
    pub fn count(&self, after: Timestamp, to: Timestamp) -> u64 {
        match self {
            Timetable::Calendar(calendar) => calendar.count(after, to),
            Timetable::Every { every_us, anchor } => {
                let index = |at: Timestamp| steps(*every_us, *anchor, at).max(-1);
                u64::try_from(index(to) - index(after)).unwrap_or(0)
            }
        }
    }

    /// Leaves at most `keep` times in `(after, to]`, the newest: answers from where on they are, and how many
    /// are left out.
    pub fn newest(&self, keep: u64, after: Timestamp, to: Timestamp) -> (Timestamp, u64) {
        let all = self.count(after, to);
        if all <= keep {
            return (after, 0);
        }
        // By bisection: counting costs the same for a second and for a month, listing does not.
        let (mut low, mut high) = (after.0, to.0);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if self.count(Timestamp(middle), to) > keep {
                low = middle;
            } else {
                high = middle;
            }
        }
        (Timestamp(high), all - keep)
    }

    /// The next `limit` times after `after`.
    pub fn upcoming(&self, after: Timestamp, limit: usize) -> Vec<Timestamp> {
        let next = |at: &Timestamp| self.next_after(*at);
        std::iter::successors(self.next_after(after), next).take(limit).collect()
    }

    /// The timing in English.
    pub fn in_words(&self) -> String {
        match self {
            Timetable::Calendar(calendar) => {
                let zone = calendar.zone.iana_name().unwrap_or("UTC");
                let words = calendar.cron.in_words();
                format!("{}{} ({zone})", words[..1].to_lowercase(), &words[1..])
            }
            Timetable::Every { every_us, .. } => format!("every {}", length(*every_us / 1000)),
        }
    }
}

/// How many whole intervals lie between the anchor and `at`, rounded down.
fn steps(every_us: i64, anchor: Timestamp, at: Timestamp) -> i64 {
    at.0.saturating_sub(anchor.0).div_euclid(every_us)
}

fn length(ms: Millis) -> String {
    const UNITS: [(Millis, &str); 4] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")];
    let mut left = ms;
    let mut parts = Vec::new();
    for (unit, name) in UNITS {
        if left / unit > 0 {
            parts.push(format!("{} {name}", left / unit));
            left %= unit;
        }
    }
    if left > 0 {
        parts.push(format!("{left} ms"));
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every(every_ms: Millis) -> Timetable {
        Timing::Interval { every_ms, phase_ms: 500 }.timetable().unwrap()
    }

    #[test]
    fn an_interval_counts_from_its_phase() {
        let table = every(10_000);
        let at = Timestamp::from_millis;

        assert_eq!(table.upcoming(at(0), 3), [at(500), at(10_500), at(20_500)]);
        assert_eq!(table.next_after(at(500)), Some(at(10_500)));
        assert_eq!(table.count(at(0), at(20_500)), 3);
        assert_eq!(table.count(at(500), at(20_499)), 1);
        assert_eq!(table.in_words(), "every 10 s");
        assert_eq!(every(90_061_001).in_words(), "every 1 d 1 h 1 min 1 s 1 ms");
    }

    #[test]
    fn the_newest_are_kept_and_the_others_counted() {
        let table =
            Timing::Cron { expression: "* * * * *".into(), time_zone: "UTC".into() }.timetable().unwrap();
        let to = Timestamp::from_millis(30 * 86_400_000);

        let (from, skipped) = table.newest(100, Timestamp(0), to);

        assert_eq!(skipped, 30 * 1440 - 100);
        let kept = table.upcoming(from, 101);
        assert_eq!(kept[99], to);
        assert_eq!(kept[0], Timestamp(to.0 - 99 * 60_000_000));
    }

    #[test]
    fn bad_timings_say_what_is_wrong() {
        let cron = |expression: &str, zone: &str| Timing::Cron {
            expression: expression.into(),
            time_zone: zone.into(),
        };
        let said = |timing: Timing| timing.timetable().unwrap_err().to_string();

        assert!(said(cron("61 * * * *", "UTC")).starts_with("cron \"61 * * * *\" has \"61\" at character 1"));
        assert!(said(cron("* * * * *", "Mars/Base")).contains("Mars/Base"));
        assert!(said(Timing::Interval { every_ms: 10, phase_ms: 0 }).contains("10 ms"));
        assert!(said(Timing::Interval { every_ms: 2_000, phase_ms: 2_000 }).contains("below the interval"));
    }

    #[test]
    fn words_name_the_zone() {
        let table = Timing::Cron { expression: "30 2 * * *".into(), time_zone: "America/New_York".into() };

        assert_eq!(table.timetable().unwrap().in_words(), "at 02:30 (America/New_York)");
    }
}
