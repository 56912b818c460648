//! People who can be told something: their addresses, and when they are left alone.

use std::str::FromStr;

use jiff::{civil::Time, tz::TimeZone};
use kagzi_model::{Timestamp, intervention};
use serde::{Deserialize, Serialize};

use crate::Severity;

/// How one person is reached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Contact {
    pub name: String,
    pub email: Option<String>,
    /// An address that an operator set for this contact; none: the server's own.
    pub webhook: Option<String>,
    /// A name of the time zone database; UTC when none is set.
    pub time_zone: Option<String>,
    pub quiet: Option<QuietHours>,
}

/// From when until when a person is left alone, by the clock on their wall. The end may be on the next day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "WrittenHours", into = "WrittenHours")]
pub struct QuietHours {
    from: Time,
    to: Time,
}

#[derive(Serialize, Deserialize)]
struct WrittenHours {
    from: String,
    to: String,
}

/// Hours that no clock shows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuietHoursError {
    #[error("'{0}' is no time of day; write hours and minutes, such as 22:00")]
    NotATime(String),
    #[error("quiet hours from {0} to {0} are no hours; for silence take the channels away")]
    Empty(String),
}

impl QuietHours {
    /// Reads `22:00` and `07:30`.
    pub fn new(from: &str, to: &str) -> Result<QuietHours, QuietHoursError> {
        let quiet = QuietHours { from: time_of_day(from)?, to: time_of_day(to)? };
        if quiet.from == quiet.to {
            return Err(QuietHoursError::Empty(from.to_owned()));
        }
        Ok(quiet)
    }

    /// Whether a clock that shows this time is in quiet hours. The end does not belong to them.
    fn contains(self, shown: Time) -> bool {
        if self.from < self.to {
            (self.from..self.to).contains(&shown)
        } else {
            shown >= self.from || shown < self.to
        }
    }
}

fn time_of_day(text: &str) -> Result<Time, QuietHoursError> {
    let wrong = || QuietHoursError::NotATime(crate::clean::line(text, 20));
    let (hours, minutes) = text.split_once(':').ok_or_else(wrong)?;
    let number = |part: &str| match part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit()) {
        true => i8::from_str(part).map_err(|_| wrong()),
        false => Err(wrong()),
    };
    Time::new(number(hours)?, number(minutes)?, 0, 0).map_err(|_| wrong())
}

impl TryFrom<WrittenHours> for QuietHours {
    type Error = QuietHoursError;

    fn try_from(written: WrittenHours) -> Result<QuietHours, QuietHoursError> {
        QuietHours::new(&written.from, &written.to)
    }
}

impl From<QuietHours> for WrittenHours {
    fn from(quiet: QuietHours) -> WrittenHours {
        let written = |time: Time| format!("{:02}:{:02}", time.hour(), time.minute());
        WrittenHours { from: written(quiet.from), to: written(quiet.to) }
    }
}

impl Contact {
    /// A person as the inbox knows them. Hours and zones were checked when they were set; what cannot be read
    /// any more holds nothing back.
    pub fn of(name: &str, kept: &intervention::Contact) -> Contact {
        let set = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        Contact {
            name: name.to_owned(),
            email: set(&kept.email),
            webhook: set(&kept.webhook),
            time_zone: set(&kept.time_zone),
            quiet: QuietHours::new(&kept.quiet_from, &kept.quiet_to).ok(),
        }
    }

    /// The contact's time zone. One that the database of zones does not know is checked when a contact is
    /// set; should it be gone later, UTC is better than silence.
    pub fn zone(&self) -> TimeZone {
        let known = self.time_zone.as_deref().and_then(|name| TimeZone::get(name).ok());
        known.unwrap_or(TimeZone::UTC)
    }

    /// Until when a message to this person is held back; none when it may be sent now. A critical incident
    /// is never held back.
    pub fn held_until(&self, severity: Option<Severity>, now: Timestamp) -> Option<Timestamp> {
        match (self.quiet, severity) {
            (None, _) | (_, Some(Severity::Critical)) => None,
            (Some(quiet), None | Some(Severity::Low | Severity::High)) => {
                held_until(quiet, &self.zone(), now)
            }
        }
    }
}

/// Whether the database of time zones has a zone of this name.
pub fn is_zone(name: &str) -> bool {
    TimeZone::get(name).is_ok()
}

/// The end of the quiet hours that hold at `now`, in this zone: the first moment at which the clock on the
/// wall shows a time outside them. None when it does so already.
///
/// The clock on the wall decides, also when it is set: where it leaps over the end, quiet hours end with the
/// leap; where it is set back into them, they hold again.
pub fn held_until(quiet: QuietHours, zone: &TimeZone, now: Timestamp) -> Option<Timestamp> {
    let instant = jiff::Timestamp::from_microsecond(now.0).ok()?;
    let holds = |at: jiff::Timestamp| quiet.contains(zone.to_datetime(at).time());
    if !holds(instant) {
        return None;
    }
    // The end of quiet hours on this day and the next ones, both times where the clock shows it twice, and
    // every moment at which the clock is set: the earliest of them that is outside.
    let today = zone.to_datetime(instant).date();
    let days = (0..=2).filter_map(|n| today.checked_add(jiff::Span::new().days(n)).ok());
    let ends = days.flat_map(|day| {
        let shown = zone.to_ambiguous_timestamp(day.to_datetime(quiet.to));
        [shown.earlier(), shown.later()]
    });
    let leaps = zone.following(instant).take(4).map(|transition| Ok(transition.timestamp()));
    let later = ends.chain(leaps).flatten().filter(|at| *at > instant && !holds(*at));
    later.min().map(|at| Timestamp(at.as_microsecond()))
}

#[cfg(test)]
mod tests;
