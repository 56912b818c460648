use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

const HOUR_MS: Millis = 60 * 60_000;

fn tried(tries: u32, begun_ms: Millis, now_ms: Millis) -> Tried<'static> {
    Tried {
        id: b"notice",
        tries,
        begun_at: Timestamp::from_millis(begun_ms),
        now: Timestamp::from_millis(now_ms),
    }
}

/// The times of all tries of a message that is never taken.
fn tries_of(id: &[u8], took_ms: Millis) -> Vec<Timestamp> {
    let begun_at = Timestamp::from_millis(1_000);
    let mut at = begun_at;
    let mut times = vec![at];
    loop {
        let tries = u32::try_from(times.len()).unwrap();
        match next_try(&Tried { id, tries, begun_at, now: at.plus_ms(took_ms) }, None) {
            Some(next) => times.push(next),
            None => return times,
        }
        at = *times.last().unwrap();
        assert!(times.len() < 1_000, "it never ends");
    }
}

#[test]
fn the_policy_is_critical_stretched_to_a_day() {
    assert_eq!(POLICY.initial_interval_ms, Some(28_800));
    assert_eq!(POLICY.maximum_interval_ms, Some(8_640_000));
    assert_eq!(POLICY.check(), Ok(()));
}

#[test]
fn a_message_is_tried_until_the_end_of_its_day_and_then_given_up() {
    for id in 0u32..200 {
        let times = tries_of(&id.to_be_bytes(), 0);

        assert_eq!(*times.last().unwrap(), times[0].plus_ms(TRIED_FOR_MS));
        assert!(times.is_sorted_by(|a, b| a < b));
        assert!((15..=24).contains(&times.len()), "{}", times.len());
        let first = times[1].remaining_ms(times[0]);
        assert!((20_160..=37_440).contains(&first), "half a minute with its jitter: {first}");
        let longest = times.windows(2).map(|pair| pair[1].remaining_ms(pair[0])).max().unwrap();
        assert!(longest <= 8_640_000, "{longest}");
    }
}

#[test]
fn tries_that_take_their_time_end_the_day_no_later() {
    let times = tries_of(b"slow", 30_000);

    assert_eq!(*times.last().unwrap(), times[0].plus_ms(TRIED_FOR_MS));
}

#[test]
fn two_messages_do_not_come_back_at_the_same_moment() {
    let moments: HashSet<i64> = (0u32..100).map(|id| tries_of(&id.to_be_bytes(), 0)[1].0).collect();

    assert!(moments.len() > 90, "{}", moments.len());
}

#[test]
fn a_receiver_that_asks_for_patience_gets_an_hour_at_most_and_never_a_sooner_try() {
    let next = |asked_ms| next_try(&tried(1, 0, 0), asked_ms).unwrap().remaining_ms(Timestamp(0));
    let own = next(None);

    assert_eq!(next(Some(0)), own);
    assert_eq!(next(Some(-5)), own);
    assert_eq!(next(Some(120_000)), 120_000);
    assert_eq!(next(Some(Millis::MAX)), HOUR_MS);
    let late = next_try(&tried(30, 0, TRIED_FOR_MS - 5), Some(HOUR_MS)).unwrap();
    assert_eq!(late, Timestamp::from_millis(TRIED_FOR_MS));
}

/// Every outcome at every kind of moment.
#[test]
fn what_follows_a_try() {
    let why = || "451\r\nlater".to_owned();
    for (tries, now_ms) in
        [(1, 0), (5, HOUR_MS), (20, TRIED_FOR_MS - 1), (21, TRIED_FOR_MS), (99, i64::MAX / 2_000)]
    {
        let tried = tried(tries, 0, now_ms);
        let temporary = Outcome::Temporary { why: why(), after_ms: None };

        assert_eq!(settle(&Outcome::Taken, &tried), Settled::Sent);
        let refused = settle(&Outcome::Permanent { why: why() }, &tried);
        assert_eq!(refused, Settled::GivenUp { error: "451 later".into() });
        match settle(&temporary, &tried) {
            Settled::Retrying { next_at, error } => {
                assert!(now_ms < TRIED_FOR_MS);
                assert!(next_at > tried.now && next_at <= Timestamp::from_millis(TRIED_FOR_MS));
                assert_eq!(error, "451 later");
            }
            Settled::GivenUp { error } => {
                assert!(now_ms >= TRIED_FOR_MS);
                assert_eq!(error, "451 later");
            }
            other @ (Settled::Sent | Settled::Held { .. }) => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_error_of_any_size_is_kept_as_one_short_line() {
    let outcome = Outcome::temporary("x\n".repeat(100_000));

    let Settled::Retrying { error, .. } = settle(&outcome, &tried(1, 0, 0)) else { panic!("it is retried") };

    assert_eq!(error.chars().count(), ERROR_CHARS_MAX);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_next_try_is_after_now_and_within_the_day(
        id in any::<[u8; 16]>(), tries in 1u32..1_000, begun in 0i64..1_000_000, passed in 0i64..200_000_000,
        asked in prop::option::of(any::<i64>()),
    ) {
        let (begun_at, now) = (Timestamp::from_millis(begun), Timestamp::from_millis(begun + passed));

        match next_try(&Tried { id: &id, tries, begun_at, now }, asked) {
            Some(next) => {
                prop_assert!(next > now && next <= begun_at.plus_ms(TRIED_FOR_MS));
            }
            None => prop_assert!(passed >= TRIED_FOR_MS),
        }
    }
}
