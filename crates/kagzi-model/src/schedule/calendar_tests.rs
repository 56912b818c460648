//! Daylight saving, day by day: New York (an hour at two), Santiago (an hour at midnight), Lord Howe (half an
//! hour).

use super::*;

fn calendar(zone: &str, cron: &str) -> Calendar {
    Calendar { cron: Cron::parse(cron).unwrap(), zone: TimeZone::get(zone).unwrap() }
}

/// The moments of `(from, to]`, both in UTC, as the wall clock shows them with its offset.
fn times(zone: &str, cron: &str, (from, to): (&str, &str)) -> Vec<String> {
    let calendar = calendar(zone, cron);
    let at = |text: &str| timestamp(text.parse::<Moment>().unwrap());
    let mut times = Vec::new();
    let mut after = at(from);
    while let Some(next) = calendar.next_after(after).filter(|next| *next <= at(to)) {
        let shown = moment(next).unwrap().to_zoned(calendar.zone.clone());
        times.push(shown.strftime("%d %H:%M%:z").to_string());
        after = next;
    }
    assert_eq!(calendar.count(at(from), at(to)), times.len() as u64, "counting agrees with listing");
    times
}

const NEW_YORK: &str = "America/New_York";
const NEW_YORK_SPRING: (&str, &str) = ("2026-03-07T17:00:00Z", "2026-03-09T16:00:00Z");
const NEW_YORK_AUTUMN: (&str, &str) = ("2026-10-31T16:00:00Z", "2026-11-02T17:00:00Z");
const SANTIAGO: &str = "America/Santiago";
const SANTIAGO_SPRING: (&str, &str) = ("2026-09-05T16:00:00Z", "2026-09-07T15:00:00Z");
const SANTIAGO_AUTUMN: (&str, &str) = ("2026-04-04T15:00:00Z", "2026-04-06T16:00:00Z");
const LORD_HOWE: &str = "Australia/Lord_Howe";
const LORD_HOWE_SPRING: (&str, &str) = ("2026-10-03T12:00:00Z", "2026-10-05T12:00:00Z");
const LORD_HOWE_AUTUMN: (&str, &str) = ("2026-04-04T12:00:00Z", "2026-04-06T12:00:00Z");

#[test]
fn a_time_that_new_york_skips_runs_at_the_first_moment_after_the_gap() {
    assert_eq!(times(NEW_YORK, "30 2 * * *", NEW_YORK_SPRING), ["08 03:00-04:00", "09 02:30-04:00"]);
    assert_eq!(
        times(NEW_YORK, "30 2,14 * * *", NEW_YORK_SPRING),
        ["07 14:30-05:00", "08 03:00-04:00", "08 14:30-04:00", "09 02:30-04:00"],
        "a list of hours is a list of times of day"
    );
    assert_eq!(times(NEW_YORK, "0 3 * * *", NEW_YORK_SPRING), ["08 03:00-04:00", "09 03:00-04:00"]);
}

#[test]
fn several_skipped_times_of_one_day_run_once() {
    assert_eq!(
        times(NEW_YORK, "*/20 2 * * *", NEW_YORK_SPRING),
        ["08 03:00-04:00", "09 02:00-04:00", "09 02:20-04:00", "09 02:40-04:00"]
    );
    assert_eq!(times(NEW_YORK, "0 2,3 * * 0", NEW_YORK_SPRING), ["08 03:00-04:00"]);
}

#[test]
fn a_time_that_new_york_has_twice_runs_the_first_time() {
    assert_eq!(times(NEW_YORK, "30 1 * * *", NEW_YORK_AUTUMN), ["01 01:30-04:00", "02 01:30-05:00"]);
    assert_eq!(
        times(NEW_YORK, "0 1-2 * * *", NEW_YORK_AUTUMN),
        ["01 01:00-04:00", "01 02:00-05:00", "02 01:00-05:00", "02 02:00-05:00"]
    );
}

#[test]
fn an_hourly_frequency_follows_real_hours() {
    let spring = times(NEW_YORK, "0 * * * *", NEW_YORK_SPRING);
    let autumn = times(NEW_YORK, "0 * * * *", NEW_YORK_AUTUMN);

    assert_eq!(spring.len(), 47, "from noon to noon: {spring:?}");
    assert!(!spring.iter().any(|time| time.starts_with("08 02")));
    assert_eq!(autumn.len(), 49, "{autumn:?}");
    assert!(autumn.contains(&"01 01:00-04:00".to_owned()) && autumn.contains(&"01 01:00-05:00".to_owned()));
}

#[test]
fn santiago_has_a_day_without_a_midnight() {
    assert_eq!(times(SANTIAGO, "@daily", SANTIAGO_SPRING), ["06 01:00-03:00", "07 00:00-03:00"]);
    assert_eq!(times(SANTIAGO, "0 0 * * SUN", SANTIAGO_SPRING), ["06 01:00-03:00"]);
    assert_eq!(
        times(SANTIAGO, "30 2 * * *", SANTIAGO_SPRING),
        ["06 02:30-03:00", "07 02:30-03:00"],
        "a gap that is none of its business changes nothing"
    );
}

#[test]
fn santiago_has_an_evening_hour_twice() {
    assert_eq!(times(SANTIAGO, "30 23 * * *", SANTIAGO_AUTUMN), ["04 23:30-03:00", "05 23:30-04:00"]);
    assert_eq!(times(SANTIAGO, "@daily", SANTIAGO_AUTUMN), ["05 00:00-04:00", "06 00:00-04:00"]);
}

#[test]
fn lord_howe_moves_by_half_an_hour() {
    assert_eq!(times(LORD_HOWE, "15 2 * * *", LORD_HOWE_SPRING), ["04 02:30+11:00", "05 02:15+11:00"]);
    assert_eq!(times(LORD_HOWE, "45 1 * * *", LORD_HOWE_AUTUMN), ["05 01:45+11:00", "06 01:45+10:30"]);
    let quarter = times(LORD_HOWE, "*/15 * * * *", LORD_HOWE_SPRING);
    assert_eq!(quarter.len(), 48 * 4, "every quarter of a real hour");
    let quarter = times(LORD_HOWE, "*/15 * * * *", LORD_HOWE_AUTUMN);
    assert_eq!(quarter.len(), 48 * 4);
    assert!(quarter.contains(&"05 01:45+11:00".to_owned()) && quarter.contains(&"05 01:45+10:30".to_owned()));
}

#[test]
fn a_leap_day_is_found_years_ahead_and_an_end_is_an_end() {
    let at = timestamp("2026-11-16T00:00:00Z".parse().unwrap());
    let leap = calendar(NEW_YORK, "0 12 29 2 *").next_after(at).unwrap();

    assert_eq!(moment(leap).unwrap().to_string(), "2028-02-29T17:00:00Z");
    assert_eq!(calendar(NEW_YORK, "0 0 12 1 1 * 2026").next_after(at), None);
    assert_eq!(calendar("UTC", "0 0 12 1 1 * 2026").next_after(at), None);
}

#[test]
fn a_year_far_away_in_a_zone_with_two_offsets_is_found_without_walking_there() {
    let far = calendar("Europe/Berlin", "0 30 2 31 3 * 4999");
    let next = || far.next_after(Timestamp(1_700_000_000_000_000)).unwrap();

    // Six thousand changes of the clock lie in between: looking at each, this took longer than five minutes.
    let found = next();
    for _ in 0..100 {
        assert_eq!(next(), found);
    }

    // Clocks go forward on that day, so the time that is skipped runs at the end of the gap.
    let shown = moment(found).unwrap().to_zoned(far.zone.clone());
    assert_eq!(shown.strftime("%F %T%:z").to_string(), "4999-03-31 03:00:00+02:00");
}
