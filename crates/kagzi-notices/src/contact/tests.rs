use proptest::prelude::*;

use super::*;

fn at(text: &str) -> Timestamp {
    let instant: jiff::Timestamp = text.parse().expect("a time of the test");
    Timestamp(instant.as_microsecond())
}

fn held(from: &str, to: &str, zone: &str, now: &str) -> Option<String> {
    let quiet = QuietHours::new(from, to).unwrap();
    let zone = TimeZone::get(zone).expect("the bundled zones have it");
    let until = held_until(quiet, &zone, at(now))?;
    Some(jiff::Timestamp::from_microsecond(until.0).unwrap().to_string())
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn quiet_hours_within_a_day_and_over_midnight() {
    assert_eq!(held("12:00", "13:30", "UTC", "2026-05-01T11:59:59Z"), None);
    assert_eq!(held("12:00", "13:30", "UTC", "2026-05-01T12:00:00Z"), some("2026-05-01T13:30:00Z"));
    assert_eq!(held("12:00", "13:30", "UTC", "2026-05-01T13:30:00Z"), None);
    assert_eq!(held("22:00", "07:00", "UTC", "2026-05-01T21:59:59Z"), None);
    assert_eq!(held("22:00", "07:00", "UTC", "2026-05-01T23:00:00Z"), some("2026-05-02T07:00:00Z"));
    assert_eq!(held("22:00", "07:00", "UTC", "2026-05-02T06:59:59Z"), some("2026-05-02T07:00:00Z"));
    assert_eq!(held("22:00", "07:00", "UTC", "2026-05-02T07:00:00Z"), None);
}

#[test]
fn quiet_hours_are_those_of_the_persons_own_clock() {
    assert_eq!(held("22:00", "07:00", "Asia/Kolkata", "2026-05-01T17:00:00Z"), some("2026-05-02T01:30:00Z"));
    assert_eq!(held("22:00", "07:00", "America/New_York", "2026-05-01T17:00:00Z"), None);
}

/// In Berlin the clock leaps from 02:00 to 03:00 on 29 March 2026 (01:00 UTC).
#[test]
fn where_the_clock_leaps_over_the_end_quiet_hours_end_with_the_leap() {
    let berlin = "Europe/Berlin";

    assert_eq!(held("22:00", "02:30", berlin, "2026-03-28T23:00:00Z"), some("2026-03-29T01:00:00Z"));
    assert_eq!(held("22:00", "07:00", berlin, "2026-03-28T23:00:00Z"), some("2026-03-29T05:00:00Z"));
    assert_eq!(held("02:10", "02:50", berlin, "2026-03-29T00:59:59Z"), None);
    assert_eq!(held("02:10", "02:50", berlin, "2026-03-29T01:00:00Z"), None);
    assert_eq!(held("02:30", "04:00", berlin, "2026-03-29T01:00:00Z"), some("2026-03-29T02:00:00Z"));
}

/// In Berlin the clock is set back from 03:00 to 02:00 on 25 October 2026 (01:00 UTC).
#[test]
fn where_the_clock_is_set_back_into_them_quiet_hours_hold_again() {
    let berlin = "Europe/Berlin";

    assert_eq!(held("22:00", "02:30", berlin, "2026-10-25T00:15:00Z"), some("2026-10-25T00:30:00Z"));
    assert_eq!(held("22:00", "02:30", berlin, "2026-10-25T00:45:00Z"), None);
    assert_eq!(held("22:00", "02:30", berlin, "2026-10-25T01:15:00Z"), some("2026-10-25T01:30:00Z"));
    assert_eq!(held("02:45", "06:00", berlin, "2026-10-25T00:50:00Z"), some("2026-10-25T01:00:00Z"));
    assert_eq!(held("22:00", "07:00", berlin, "2026-10-24T23:00:00Z"), some("2026-10-25T06:00:00Z"));
}

/// The same rule in its simplest form: look at the clock on the wall, minute by minute.
fn by_looking(quiet: QuietHours, zone: &TimeZone, now: Timestamp) -> Option<Timestamp> {
    let inside = |at: Timestamp| {
        let instant = jiff::Timestamp::from_microsecond(at.0).unwrap();
        quiet.contains(zone.to_datetime(instant).time())
    };
    if !inside(now) {
        return None;
    }
    let minutes =
        (1..=3 * 24 * 60).map(|minute| Timestamp(now.0 / 60_000_000 * 60_000_000).plus_ms(minute * 60_000));
    minutes.into_iter().find(|at| !inside(*at))
}

const ZONES: [&str; 8] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Pacific/Apia",
    "Asia/Kathmandu",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn quiet_hours_end_when_the_clock_on_the_wall_says_so(
        zone in prop::sample::select(ZONES.to_vec()),
        from in 0i64..1440, length in 1i64..1440,
        // From 2011, when Samoa left out a day, to 2030.
        day in 15_000i64..22_000, second in 0i64..86_400,
        // Around the moments at which clocks are set: so many minutes before, and an end so long after.
        around in prop::option::of((-90i64..600, -90i64..90)),
    ) {
        let clock = |minute: i64| format!("{:02}:{:02}", minute.rem_euclid(1440) / 60, minute.rem_euclid(60));
        let zone = TimeZone::get(zone).unwrap();
        let mut now = jiff::Timestamp::from_second(day * 86_400 + second).unwrap();
        let mut to = from + length;
        if let (Some((before, end)), Some(set)) = (around, zone.following(now).next()) {
            now = set.timestamp() - jiff::SignedDuration::from_mins(before);
            let shown = zone.to_datetime(set.timestamp()).time();
            to = i64::from(shown.hour()) * 60 + i64::from(shown.minute()) + end;
        }
        let quiet = QuietHours::new(&clock(to - length), &clock(to)).unwrap();
        let now = Timestamp(now.as_microsecond());

        let until = held_until(quiet, &zone, now);

        prop_assert_eq!(until, by_looking(quiet, &zone, now));
    }
}

#[test]
fn hours_that_no_clock_shows_are_refused() {
    for (from, to) in [("24:00", "07:00"), ("22", "07:00"), ("22:00", "7:00"), ("22:60", "07:00"), ("", "")] {
        assert!(matches!(QuietHours::new(from, to), Err(QuietHoursError::NotATime(_))), "{from} {to}");
    }
    assert!(matches!(QuietHours::new("22:00", "22:00"), Err(QuietHoursError::Empty(_))));
    let read: Result<QuietHours, _> = serde_json::from_str(r#"{"from": "22:00", "to": "22:00"}"#);
    assert!(read.is_err());
}

#[test]
fn a_critical_incident_is_not_held_back_and_all_others_are() {
    let contact = Contact { quiet: Some(QuietHours::new("22:00", "07:00").unwrap()), ..Contact::default() };
    let night = at("2026-05-01T23:00:00Z");
    let morning = Some(at("2026-05-02T07:00:00Z"));

    assert_eq!(contact.held_until(None, night), morning);
    assert_eq!(contact.held_until(Some(Severity::Low), night), morning);
    assert_eq!(contact.held_until(Some(Severity::High), night), morning);
    assert_eq!(contact.held_until(Some(Severity::Critical), night), None);
    assert_eq!(Contact::default().held_until(None, night), None);
}
