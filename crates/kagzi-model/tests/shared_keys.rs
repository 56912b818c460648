//! Shared keys: every row of the table of claims, and that no two holders have one fence.

use kagzi_model::{
    ClaimKey, Failure, FinishKey, ForgetKey, KeyHolder, KeyOutcome, KeyState, Name, NounChange,
    NounRejection, NounRow, NounRule, RunId, SharedKey, Timestamp,
};
use proptest::prelude::*;

const DAY: i64 = 86_400_000;
const LOCK: i64 = 60_000;

fn at(ms: i64) -> Timestamp {
    Timestamp(ms * 1_000)
}

fn client(name: &str) -> KeyHolder {
    KeyHolder::Client { name: name.into() }
}

fn run(n: u128) -> KeyHolder {
    KeyHolder::Run { run: RunId(uuid::Uuid::from_u128(n)), step: "charge".into() }
}

fn claim(holder: KeyHolder) -> ClaimKey {
    let lock_ms = matches!(holder, KeyHolder::Client { .. }).then_some(LOCK);
    let (namespace, key) = (Name::from("shop"), Name::from("k"));
    ClaimKey { namespace, key, holder, input: None, ttl_ms: DAY, lock_ms, released: None }
}

fn finish(holder: KeyHolder, fence: u64, outcome: KeyOutcome) -> FinishKey {
    FinishKey { namespace: "shop".into(), key: "k".into(), holder, fence, outcome }
}

fn done(result: &str) -> KeyOutcome {
    KeyOutcome::Completed { result: result.into() }
}

/// A row and what is made of it.
#[derive(Default, Clone)]
struct Row(Option<NounRow>);

impl Row {
    fn ask(&mut self, ms: i64, rule: &dyn NounRule) -> Result<SharedKey, NounRejection> {
        let row = match rule.decide(at(ms), self.0.as_ref())? {
            NounChange::Nothing(row) => row,
            NounChange::Put(row) => {
                let version = self.0.as_ref().map_or(0, |known| known.version);
                assert_eq!(row.version, version + 1, "every change has a version of its own");
                self.0 = Some(row.clone());
                row
            }
            NounChange::Delete(row) => {
                self.0 = None;
                row
            }
        };
        row.read()
    }

    fn claims(&mut self, ms: i64, rule: &ClaimKey) -> Option<u64> {
        let key = self.ask(ms, rule).unwrap();
        key.is_held_by(&rule.holder, key.fence).then_some(key.fence)
    }
}

#[test]
fn the_first_has_it_and_others_do_not_until_it_is_over() {
    let mut row = Row::default();
    assert_eq!(row.claims(0, &claim(run(1))), Some(1));
    assert_eq!(row.claims(DAY * 300, &claim(run(1))), Some(1), "the same step on another worker goes on");
    assert_eq!(row.claims(DAY * 300, &claim(run(2))), None, "a run's claim has no time");
    let key = row.ask(DAY * 300, &finish(run(1), 1, done("r"))).unwrap();
    assert_eq!((key.state, key.result.as_deref()), (KeyState::Completed, Some("r")));
    assert_eq!(row.claims(DAY * 300, &claim(run(2))), None);
    assert_eq!(row.ask(DAY * 300, &claim(run(2))).unwrap().result.as_deref(), Some("r"));
}

#[test]
fn a_result_is_kept_for_its_time_from_the_end_on_and_then_the_work_is_done_again() {
    let mut row = Row::default();
    row.claims(0, &claim(client("a")));
    row.ask(10, &finish(client("a"), 1, done("r"))).unwrap();
    assert_eq!(row.claims(DAY + 9, &claim(client("b"))), None);
    assert_eq!(row.claims(DAY + 10, &claim(client("b"))), Some(2));
}

#[test]
fn a_silent_client_loses_its_claim_and_its_late_result_is_not_taken() {
    let mut row = Row::default();
    assert_eq!(row.claims(0, &claim(client("a"))), Some(1));
    assert_eq!(row.claims(LOCK - 1, &claim(client("b"))), None);
    let renew = KeyOutcome::Renewed { lock_ms: LOCK };
    row.ask(LOCK - 1, &finish(client("a"), 1, renew.clone())).unwrap();
    assert_eq!(row.claims(2 * LOCK - 2, &claim(client("b"))), None, "it was renewed");
    assert_eq!(row.claims(2 * LOCK - 1, &claim(client("b"))), Some(2));
    for late in [done("late"), KeyOutcome::Failed(Failure::new("X", "")), renew] {
        let key = row.ask(2 * LOCK, &finish(client("a"), 1, late)).unwrap();
        assert!(key.is_held_by(&client("b"), 2), "{key:?}");
        assert_eq!((key.result, key.failure), (None, None));
    }
}

#[test]
fn a_run_that_has_ended_holds_nothing_and_a_holder_of_in_between_is_not_robbed() {
    let mut row = Row::default();
    row.claims(0, &claim(run(1)));
    let after_end = |holder| ClaimKey { released: Some(1), ..claim(holder) };
    assert_eq!(row.claims(1, &after_end(run(2))), Some(2));
    assert_eq!(row.claims(2, &after_end(run(3))), None, "the fence has risen since it was looked at");
}

#[test]
fn a_failure_for_good_stays_and_one_that_may_be_retried_is_tried_by_whoever_comes_next() {
    let mut row = Row::default();
    row.claims(0, &claim(client("a")));
    let failed = |failure: Failure| KeyOutcome::Failed(failure);
    row.ask(1, &finish(client("a"), 1, failed(Failure::new("BUSY", "")))).unwrap();
    assert_eq!(row.claims(2, &claim(client("b"))), Some(2));
    row.ask(3, &finish(client("b"), 2, failed(Failure::new("NO", "").non_retryable()))).unwrap();
    assert_eq!(row.claims(4, &claim(client("c"))), None);
    assert_eq!(row.ask(4, &claim(client("c"))).unwrap().state, KeyState::Failed);
    assert_eq!(row.claims(DAY + 3, &claim(client("c"))), Some(3));
}

#[test]
fn the_same_key_with_another_input_is_a_conflict_while_it_is_kept() {
    let with = |name: &str, hash: &str| ClaimKey { input: Some(hash.into()), ..claim(client(name)) };
    let mut row = Row::default();
    assert_eq!(row.claims(0, &with("a", "one")), Some(1));
    assert!(row.ask(1, &with("b", "two")).unwrap().conflicts(at(1), Some("two")));
    assert!(!row.ask(1, &with("b", "one")).unwrap().conflicts(at(1), Some("one")));
    row.ask(2, &finish(client("a"), 1, done("r"))).unwrap();
    assert!(row.ask(3, &with("b", "two")).unwrap().conflicts(at(3), Some("two")));
    assert_eq!(row.claims(DAY + 2, &with("b", "two")), Some(2), "what has expired conflicts with nothing");
}

#[test]
fn saying_the_end_twice_is_a_repeat_and_what_is_not_there_is_said() {
    let mut row = Row::default();
    assert!(matches!(row.ask(0, &finish(run(1), 1, done("r"))), Err(NounRejection::NotFound(_))));
    row.claims(0, &claim(run(1)));
    let first = row.ask(1, &finish(run(1), 1, done("r"))).unwrap();
    assert_eq!(row.ask(9, &finish(run(1), 1, done("r"))).unwrap(), first);
    assert_eq!(row.ask(9, &finish(run(1), 1, done("other"))).unwrap(), first, "the first word counts");
}

#[test]
fn a_key_is_forgotten_when_it_is_asked_for_and_by_the_sweep_only_when_it_has_expired() {
    let forget = |if_expired| ForgetKey { namespace: "shop".into(), key: "k".into(), if_expired };
    let mut row = Row::default();
    row.claims(0, &claim(run(1)));
    row.ask(DAY * 9, &forget(true)).unwrap();
    assert!(row.0.is_some(), "what is in progress never expires");
    row.ask(DAY * 9, &finish(run(1), 1, done("r"))).unwrap();
    row.ask(DAY * 10 - 1, &forget(true)).unwrap();
    assert!(row.0.is_some());
    row.clone().ask(DAY * 9, &forget(false)).unwrap();
    row.ask(DAY * 10, &forget(true)).unwrap();
    assert!(row.0.is_none());
}

#[derive(Debug, Clone)]
enum Move {
    Claim(u8, Option<u64>),
    Finish(u8, u64, u8),
    Wait(i64),
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        (0..4u8, prop::option::of(1..4u64)).prop_map(|(who, released)| Move::Claim(who, released)),
        (0..4u8, 1..5u64, 0..3u8).prop_map(|(who, fence, how)| Move::Finish(who, fence, how)),
        (0..2 * LOCK).prop_map(Move::Wait),
        Just(Move::Wait(2 * DAY)),
    ]
}

proptest! {
    /// Fences rise with every holder; a result is only ever written by the holder of the fence it stands
    /// under;
    /// and what is completed stays as it is until it has expired.
    #[test]
    fn no_two_holders_have_one_fence_and_a_result_is_its_holders(
        moves in prop::collection::vec(any_move(), 1..60),
    ) {
        let holder = |who: u8| if who < 2 { client(&who.to_string()) } else { run(who.into()) };
        let (mut row, mut now, mut holders) = (Row::default(), 0, std::collections::BTreeMap::new());
        for one in moves {
            let before: Option<SharedKey> = row.0.as_ref().map(|row| row.read().unwrap());
            match one {
                Move::Wait(ms) => now += ms,
                Move::Claim(who, released) => {
                    let key = row.ask(now, &ClaimKey { released, ..claim(holder(who)) }).unwrap();
                    let known = holders.entry(key.fence).or_insert_with(|| key.holder.clone());
                    prop_assert_eq!(&*known, &key.holder);
                    if let Some(before) = before {
                        prop_assert!(key.fence >= before.fence);
                        let kept = before.state == KeyState::Completed
                            && before.expires_at().is_some_and(|end| at(now) < end);
                        prop_assert!(!kept || key == before, "{:?} became {:?}", before, key);
                    }
                }
                Move::Finish(who, fence, how) => {
                    let outcome = match how {
                        0 => done(&format!("{who}/{fence}")),
                        1 => KeyOutcome::Failed(Failure::new("X", "")),
                        _ => KeyOutcome::Renewed { lock_ms: LOCK },
                    };
                    let Ok(key) = row.ask(now, &finish(holder(who), fence, outcome)) else { continue };
                    if let Some(result) = &key.result {
                        let (who, fence) = result.split_once('/').unwrap();
                        prop_assert_eq!(fence, key.fence.to_string());
                        prop_assert_eq!(holder(who.parse().unwrap()), key.holder.clone());
                    }
                }
            }
        }
    }
}
