//! Cron expressions: 5, 6 or 7 fields, POSIX weekdays, aliases. What is wrong is said with its place.

use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::{Date, DateTime};

use super::dialect::translate;

/// A cron expression that has been checked.
#[derive(Debug, Clone)]
pub struct Cron {
    pattern: croner::Cron,
    /// The hours are named (`2`, `9-17`), so the expression speaks of times of day. With `*` hours it speaks
    /// of a frequency instead.
    pub(super) names_hours: bool,
    hours: Vec<u32>,
    minutes: Vec<u32>,
    seconds: Vec<u32>,
    /// The days of the month have `LW` and no `L`.
    last_weekday: bool,
}

/// Why an expression is refused. The message is written for the person who typed it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    #[error(
        "has {0} fields; write 5 (minute hour day month weekday), 6 (with seconds first) or 7 (with years \
         last)"
    )]
    Fields(usize),
    #[error("is an unknown alias; use @yearly, @annually, @monthly, @weekly, @daily, @midnight or @hourly")]
    Alias,
    #[error("has \"{text}\" at character {at}, in the field for {field}: {reason}")]
    Field { field: &'static str, at: usize, text: String, reason: String },
    #[error("never comes: at character {at} it asks for {day}, and no such day exists")]
    NeverComes { at: usize, day: String },
}

struct Field {
    name: &'static str,
    range: &'static str,
    /// Letters that may stand in it, besides names.
    letters: &'static str,
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const FIELDS: [Field; 7] = [
    Field { name: "seconds", range: "0-59", letters: "", names: &[] },
    Field { name: "minutes", range: "0-59", letters: "", names: &[] },
    Field { name: "hours", range: "0-23", letters: "", names: &[] },
    Field { name: "days of the month", range: "1-31, L, 15W", letters: "LW", names: &[] },
    Field { name: "months", range: "1-12 or JAN-DEC", letters: "", names: MONTHS },
    Field { name: "weekdays", range: "0-7 or SUN-SAT, 0 and 7 are Sunday", letters: "L", names: WEEKDAYS },
    Field { name: "years", range: "1970-4999", letters: "", names: &[] },
];

impl Cron {
    /// Reads an expression; it must be well formed and come at least once.
    pub fn parse(text: &str) -> Result<Cron, CronError> {
        let trimmed = text.trim();
        let plain = match trimmed.strip_prefix('@') {
            Some(alias) => expand(alias).ok_or(CronError::Alias)?,
            None => text,
        };
        let words = words(plain);
        let (first, last) = match words.len() {
            5 => (1, 6),
            6 => (0, 6),
            7 => (0, 7),
            n => return Err(CronError::Fields(n)),
        };
        let mut fields = ["0", "*", "*", "*", "*", "*", "*"].map(str::to_owned);
        for ((at, word), index) in words.iter().zip(first..last) {
            fields[index] = read_field(index, *at, word)?;
        }
        let pattern = parser().parse(&fields.join(" ")).map_err(|error| {
            // Each field was read alone above, so this is not reached; say what croner says all the same.
            CronError::Field { field: "all", at: 1, text: plain.to_owned(), reason: error.to_string() }
        })?;
        let days: Vec<String> = fields[3].split(',').map(str::to_ascii_uppercase).collect();
        let values = |values: Vec<u16>| values.into_iter().map(u32::from).collect();
        let cron = Cron {
            names_hours: !fields[2].starts_with('*'),
            hours: values(pattern.pattern.hours.values()),
            minutes: values(pattern.pattern.minutes.values()),
            seconds: values(pattern.pattern.seconds.values()),
            last_weekday: days.iter().any(|day| day == "LW") && days.iter().all(|day| day != "L"),
            pattern,
        };
        let epoch = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);
        if cron.first_from(epoch).is_none() {
            let at = words.get(3 - first).map_or(1, |(at, _)| *at);
            let mut day = format!("day {} of month {}", fields[3], fields[4]);
            if fields[6] != "*" {
                day.push_str(&format!(" in {}", fields[6]));
            }
            return Err(CronError::NeverComes { at, day });
        }
        Ok(cron)
    }

    /// The expression in English.
    pub fn in_words(&self) -> String {
        let words = self.pattern.describe();
        let words = words.trim_end_matches('.');
        // croner knows what LW means and calls it the last day all the same.
        match self.last_weekday {
            true => {
                words.replace("the last day of the month", "the last weekday (Monday to Friday) of the month")
            }
            false => words.to_owned(),
        }
    }

    /// The first matching time of the wall clock, at or after `from`.
    pub(super) fn first_from(&self, from: DateTime) -> Option<DateTime> {
        // The wall clock alone has no gaps and no repeats, so croner's own rules for them never apply; ours
        // are in `calendar.rs`.
        self.pattern.find_next_occurrence(&from, true).ok()
    }

    /// How many matching times of the wall clock are in `[from, to)`.
    pub(super) fn count(&self, from: DateTime, to: DateTime) -> u64 {
        let mut count = 0;
        let mut day = from.date();
        while day <= to.date() && from < to {
            if self.matches_day(day) {
                let low = if day == from.date() { self.rank(from) } else { 0 };
                let high = if day == to.date() { self.rank(to) } else { self.per_day() };
                count += high - low;
            }
            let Ok(next) = day.tomorrow() else { break };
            day = next;
        }
        count
    }

    fn matches_day(&self, day: Date) -> bool {
        let (year, month) = (i32::from(day.year()), day.month() as u32);
        let weekday = croner::Weekday::from_days_from_sunday(day.weekday().to_sunday_zero_offset() as u32);
        let pattern = &self.pattern.pattern;
        pattern.year_match(year).unwrap_or(false)
            && pattern.month_match(month).unwrap_or(false)
            && pattern.day_match(year, month, day.day() as u32, weekday).unwrap_or(false)
    }

    fn per_day(&self) -> u64 {
        (self.hours.len() * self.minutes.len() * self.seconds.len()) as u64
    }

    /// How many matching times of a day are before this one.
    fn rank(&self, time: DateTime) -> u64 {
        let below = |values: &[u32], value: i8| values.iter().filter(|v| **v < value as u32).count();
        let has = |values: &[u32], value: i8| usize::from(values.contains(&(value as u32)));
        let seconds = below(&self.seconds, time.second());
        let minutes = below(&self.minutes, time.minute()) * self.seconds.len()
            + has(&self.minutes, time.minute()) * seconds;
        let hours = below(&self.hours, time.hour()) * self.minutes.len() * self.seconds.len();
        (hours + has(&self.hours, time.hour()) * minutes) as u64
    }
}

fn parser() -> CronParser {
    CronParser::builder().seconds(Seconds::Required).year(Year::Required).build()
}

fn expand(alias: &str) -> Option<&'static str> {
    match alias.to_ascii_lowercase().as_str() {
        "yearly" | "annually" => Some("0 0 1 1 *"),
        "monthly" => Some("0 0 1 * *"),
        "weekly" => Some("0 0 * * 0"),
        "daily" | "midnight" => Some("0 0 * * *"),
        "hourly" => Some("0 * * * *"),
        _ => None,
    }
}

/// The words of a text, each with the number of its first character, counted from 1.
fn words(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    for word in text.split_whitespace() {
        let bytes = word.as_ptr() as usize - text.as_ptr() as usize;
        words.push((text[..bytes].chars().count() + 1, word));
    }
    words
}

/// Reads one field item by item, so that the place of a mistake is known, into the words of the parser.
fn read_field(index: usize, at: usize, word: &str) -> Result<String, CronError> {
    let field = &FIELDS[index];
    let mut at = at;
    let mut read = Vec::new();
    for item in word.split(',') {
        let refuse =
            |reason: String| Err(CronError::Field { field: field.name, at, text: item.to_owned(), reason });
        if item.is_empty() {
            return refuse("a list has an empty place".to_owned());
        }
        if let Some(reason) = misplaced_letters(field, item) {
            return refuse(reason);
        }
        if let Some((_, step)) = item.split_once('/')
            && let (Ok(step), Some(span)) = (step.parse::<u32>(), span(index))
            && step > span
        {
            return refuse(format!("a step of {step} is longer than the field, which has {span} values"));
        }
        let translated = match translate(index, field.names, item) {
            Ok(translated) => translated,
            Err(reason) => return refuse(reason),
        };
        let mut alone = ["*"; 7];
        alone[index] = &translated;
        if let Err(error) = parser().parse(&alone.join(" ")) {
            return refuse(format!("{}; allowed is {}", plain(&error), field.range));
        }
        read.push(translated);
        at += item.chars().count() + 1;
    }
    Ok(read.join(","))
}

/// croner replaces names everywhere: it would read `0 MON * * *` as one o'clock.
fn misplaced_letters(field: &Field, item: &str) -> Option<String> {
    let upper = item.to_ascii_uppercase();
    let mut run = String::new();
    for c in upper.chars().chain([' ']) {
        if c.is_alphabetic() {
            run.push(c);
            continue;
        }
        let word = std::mem::take(&mut run);
        let known = word.is_empty()
            || word.chars().all(|letter| field.letters.contains(letter))
            || field.names.contains(&word.as_str())
            || field.names.iter().any(|name| word.strip_prefix(name).is_some_and(|rest| rest == "L"));
        if !known {
            return Some(format!("\"{word}\" has no meaning here; allowed is {}", field.range));
        }
    }
    None
}

/// How many values a field has, where a longer step makes no sense.
fn span(index: usize) -> Option<u32> {
    match index {
        0 | 1 => Some(60),
        2 => Some(24),
        3 => Some(31),
        4 => Some(12),
        5 => Some(7),
        _ => None,
    }
}

fn plain(error: &croner::errors::CronError) -> String {
    use croner::errors::CronError as Croner;
    let text = match error {
        Croner::InvalidPattern(text) | Croner::IllegalCharacters(text) | Croner::ComponentError(text) => {
            text.clone()
        }
        Croner::EmptyPattern
        | Croner::InvalidDate
        | Croner::InvalidTime
        | Croner::TimeSearchLimitExceeded => error.to_string(),
    };
    let text = text.trim_end_matches('.');
    let mut chars = text.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Cron::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn five_six_and_seven_fields_and_aliases_are_read() {
        for text in
            ["* * * * *", "*/10 * * * * *", "0 0 0 1 1 * 2030", "@daily", "@Midnight", " 0  0 * * MON-FRI "]
        {
            assert!(Cron::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_mistake_is_named_with_its_place_and_reason() {
        let said = refusal("0 25 * * *");
        assert!(said.contains("\"25\" at character 3, in the field for hours"), "{said}");
        assert!(said.contains("number out of bounds; allowed is 0-23"), "{said}");
        assert!(
            refusal("0 0 * * MON,TUX").contains("\"TUX\" at character 13"),
            "{}",
            refusal("0 0 * * MON,TUX")
        );
        assert!(refusal("1,,2 * * * *").contains("empty place"));
        assert!(refusal("0 MON * * *").contains("no meaning here"));
        assert!(refusal("*/90 * * * *").contains("longer than the field"));
        assert!(refusal("*/0 * * * *").contains("at character 1"));
        assert!(refusal("* * * *").contains("has 4 fields"));
        assert!(refusal("").contains("has 0 fields"));
        assert!(refusal("@reboot").contains("unknown alias"));
        assert!(refusal("0 0 * * 8").contains("weekdays"));
        assert!(refusal("0 0 * * L").contains("5L or FRIL is the last Friday"));
        assert!(refusal("0 0 25-5/2 * *").contains("write 25-31/2,1-5/2"));
        assert!(refusal("0 0-24 * * *").contains("allowed is 0-23"));
    }

    #[test]
    fn the_31st_of_february_never_comes() {
        let said = refusal("0 0 31 2 *");

        assert_eq!(said, "never comes: at character 5 it asks for day 31 of month 2, and no such day exists");
        assert!(Cron::parse("0 0 29 2 *").is_ok());
    }

    /// The first three times from the first of January 2026, a Thursday.
    fn first_three(text: &str) -> Vec<String> {
        let cron = Cron::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let mut at = DateTime::constant(2026, 1, 1, 0, 0, 0, 0);
        let mut times = Vec::new();
        while times.len() < 3 {
            let next = cron.first_from(at).expect("it comes again");
            times.push(next.strftime("%m-%d %a %H:%M").to_string());
            at = next.saturating_add(jiff::SignedDuration::from_secs(1));
        }
        times
    }

    #[test]
    fn what_other_schedulers_write_means_the_same_here() {
        for (text, expected) in [
            ("0 0 * * 7L", ["01-25 Sun 00:00", "02-22 Sun 00:00", "03-29 Sun 00:00"]),
            ("0 0 LW * *", ["01-30 Fri 00:00", "02-27 Fri 00:00", "03-31 Tue 00:00"]),
            ("0\t12\t*\t*\t*", ["01-01 Thu 12:00", "01-02 Fri 12:00", "01-03 Sat 12:00"]),
            ("0/25 3 * * *", ["01-01 Thu 03:00", "01-01 Thu 03:25", "01-01 Thu 03:50"]),
            ("7/30 3 * * *", ["01-01 Thu 03:07", "01-01 Thu 03:37", "01-02 Fri 03:07"]),
            ("0 22-1 2 * *", ["01-02 Fri 00:00", "01-02 Fri 01:00", "01-02 Fri 22:00"]),
            ("0 22-5/3 * * *", ["01-01 Thu 01:00", "01-01 Thu 04:00", "01-01 Thu 22:00"]),
            ("0 0 * * FRI-MON", ["01-02 Fri 00:00", "01-03 Sat 00:00", "01-04 Sun 00:00"]),
            ("0 0 * * 6-7", ["01-03 Sat 00:00", "01-04 Sun 00:00", "01-10 Sat 00:00"]),
            ("0 0 1 NOV-FEB *", ["01-01 Thu 00:00", "02-01 Sun 00:00", "11-01 Sun 00:00"]),
            ("0 0 30-1 * *", ["01-01 Thu 00:00", "01-30 Fri 00:00", "01-31 Sat 00:00"]),
        ] {
            assert_eq!(first_three(text), expected, "{text}");
        }
    }

    #[test]
    fn the_last_weekday_is_not_called_the_last_day() {
        let words = |text: &str| Cron::parse(text).unwrap().in_words();

        assert!(words("0 0 LW * *").contains("the last weekday (Monday to Friday) of the month"));
        assert!(words("0 0 L * *").contains("the last day of the month"));
    }

    #[test]
    fn weekdays_are_posix() {
        let first = |text: &str| {
            let sunday = DateTime::constant(2026, 11, 15, 0, 0, 0, 0);
            Cron::parse(text).unwrap().first_from(sunday).unwrap().weekday()
        };

        assert_eq!(first("0 0 * * 0"), jiff::civil::Weekday::Sunday);
        assert_eq!(first("0 0 * * 7"), jiff::civil::Weekday::Sunday);
        assert_eq!(first("0 0 * * 1-5"), jiff::civil::Weekday::Monday);
        assert_eq!(first("0 0 * * SAT"), jiff::civil::Weekday::Saturday);
    }

    #[test]
    fn counting_agrees_with_listing() {
        let from = DateTime::constant(2026, 2, 27, 22, 59, 30, 0);
        let to = DateTime::constant(2026, 3, 3, 9, 0, 15, 0);
        for text in ["*/7 */13 9-22 * * *", "0 0 * * *", "30 5 1 * *", "*/20 * * * * MON", "0 12 L * FRI"] {
            let cron = Cron::parse(text).unwrap();
            let mut listed = 0;
            let mut at = from;
            while let Some(next) = cron.first_from(at).filter(|next| *next < to) {
                listed += 1;
                at = next.saturating_add(jiff::SignedDuration::from_secs(1));
            }

            assert_eq!(cron.count(from, to), listed, "{text}");
        }
    }
}
