//! A cron expression in a time zone: which moments it names.
//!
//! An expression with named hours speaks of times of day, and each local day runs as written: a time that the
//! day skips (clocks go forward) runs at the first moment after the gap, several of them once; a time that
//! the day has twice (clocks go back) runs the first time. An expression with `*` hours speaks of a
//! frequency: it runs whenever the wall clock shows a matching time, so nothing runs in a gap and a repeated
//! hour runs twice. croner's own rules differ for lists of hours and for gaps at midnight, which is why only
//! its walk over the wall clock is used (ADR 12).

use jiff::{
    Timestamp as Moment,
    civil::DateTime,
    tz::{Offset, TimeZone},
};

use super::cron::Cron;
use crate::Timestamp;

/// An expression and the zone whose wall clock it reads.
#[derive(Debug, Clone)]
pub struct Calendar {
    pub cron: Cron,
    pub zone: TimeZone,
}

/// A stretch of time with one offset from UTC.
struct Stretch {
    /// When it began and the offset before; none = it always was.
    began: Option<(Moment, Offset)>,
    ends: Option<Moment>,
    offset: Offset,
}

impl Calendar {
    /// The first named moment after `after`.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let after = moment(after)?;
        let mut stretch = self.stretch_of(after);
        let mut first = true;
        loop {
            let floor = if first { Some(after) } else { None };
            if !first && let Some(at) = self.gap_run(&stretch) {
                return Some(timestamp(at));
            }
            let found = self.cron.first_from(self.start(&stretch, floor));
            if let Some(at) = found.and_then(|civil| stretch.moment_of(civil)) {
                return Some(timestamp(at));
            }
            // After a search from the very start of a stretch, nothing found means that nothing is left at
            // all. Within the first one an hour before `after` may still come again.
            if found.is_none() && !first {
                return None;
            }
            stretch = self.stretch_of(stretch.ends?.max(before(&stretch, found)));
            first = false;
        }
    }

    /// How many named moments are in `(after, to]`.
    pub fn count(&self, after: Timestamp, to: Timestamp) -> u64 {
        let (Some(after), Some(to)) = (moment(after), moment(to)) else { return 0 };
        if to <= after {
            return 0;
        }
        let mut count = 0;
        let mut stretch = self.stretch_of(after);
        let mut first = true;
        loop {
            let floor = if first { Some(after) } else { None };
            if !first && self.gap_run(&stretch).is_some() {
                count += 1;
            }
            let from = self.start(&stretch, floor);
            let last = stretch.ends.is_none_or(|ends| to < ends);
            let end = match stretch.ends {
                Some(ends) if !last => stretch.civil(ends),
                Some(_) | None => next_second(stretch.civil(to)),
            };
            count += self.cron.count(from, end);
            match stretch.ends {
                Some(ends) if !last => stretch = self.stretch_of(ends),
                Some(_) | None => return count,
            }
            first = false;
        }
    }

    /// Where on the wall clock of a stretch to begin, after `floor` or at its start.
    fn start(&self, stretch: &Stretch, floor: Option<Moment>) -> DateTime {
        let shown = stretch.began.map(|(began, before)| {
            let before = before.to_datetime(began);
            let now = stretch.civil(began);
            // The repeated part was written once and has run once.
            if self.cron.names_hours { now.max(before) } else { now }
        });
        let floor = floor.map(|floor| next_second(stretch.civil(floor)));
        [shown, floor].into_iter().flatten().max().unwrap_or(DateTime::MIN)
    }

    /// The beginning of the stretch, when a time that was written falls into the gap before it.
    fn gap_run(&self, stretch: &Stretch) -> Option<Moment> {
        let (began, before) = stretch.began?;
        let (from, to) = (before.to_datetime(began), stretch.civil(began));
        if !self.cron.names_hours || to <= from {
            return None;
        }
        // A match at the end of the gap is found by itself.
        let skipped = self.cron.first_from(from).is_some_and(|civil| civil < to);
        let found_anyway = self.cron.first_from(to) == Some(to);
        (skipped && !found_anyway).then_some(began)
    }

    fn stretch_of(&self, at: Moment) -> Stretch {
        let offset = self.zone.to_offset(at);
        let just_after = at.saturating_add(jiff::SignedDuration::from_nanos(1)).unwrap_or(Moment::MAX);
        let began = self.zone.preceding(just_after).next().map(|change| {
            let before = change.timestamp() - jiff::SignedDuration::from_nanos(1);
            (change.timestamp(), self.zone.to_offset(before))
        });
        let ends = self.zone.following(at).next().map(|change| change.timestamp());
        Stretch { began, ends, offset }
    }
}

impl Stretch {
    fn civil(&self, at: Moment) -> DateTime {
        let civil = self.offset.to_datetime(at);
        civil - jiff::SignedDuration::from_nanos(i64::from(civil.subsec_nanosecond()))
    }

    /// The moment at which this stretch shows a time, unless it ends before.
    fn moment_of(&self, civil: DateTime) -> Option<Moment> {
        let at = self.offset.to_timestamp(civil).ok()?;
        self.ends.is_none_or(|ends| at < ends).then_some(at)
    }
}

/// Shortly before the time that is looked for. The wall clock shows no matching time until then, neither in a
/// gap nor twice, so the stretches in between need not be looked at: for a year far away they are thousands.
fn before(stretch: &Stretch, found: Option<DateTime>) -> Moment {
    let days = jiff::SignedDuration::from_hours(72);
    let early = found.and_then(|civil| stretch.offset.to_timestamp(civil.saturating_sub(days)).ok());
    early.unwrap_or(Moment::MIN)
}

fn next_second(civil: DateTime) -> DateTime {
    civil.saturating_add(jiff::SignedDuration::from_secs(1))
}

fn moment(at: Timestamp) -> Option<Moment> {
    Moment::from_microsecond(at.0).ok()
}

fn timestamp(at: Moment) -> Timestamp {
    Timestamp(at.as_microsecond())
}

#[cfg(test)]
#[path = "calendar_tests.rs"]
mod tests;
