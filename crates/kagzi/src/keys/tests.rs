use std::collections::HashMap;

use serde_json::json;

use super::*;

/// A small generator: the tests of this crate need no more.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 27)
}

/// Short texts of the characters that could confuse, so that many of them nearly meet.
fn field(state: &mut u64) -> String {
    let letters = [":", "%", "3A", "a", "b", "action", "v1", "\n", "é", ""];
    let len = random(state) % 5;
    (0..len).map(|_| letters[(random(state) % letters.len() as u64) as usize]).collect()
}

/// The seeds of this test are fixed: a failure is the same everywhere.
#[test]
fn no_two_tuples_of_fields_have_one_key() {
    let mut state = 7;
    let mut seen: HashMap<String, (u8, [String; 3], Option<u64>)> = HashMap::new();
    for _ in 0..200_000 {
        let fields = [field(&mut state), field(&mut state), field(&mut state)];
        let version = random(&mut state).is_multiple_of(2).then(|| random(&mut state) % 3);
        let [a, b, c] = &fields;
        let kind = (random(&mut state) % 6) as u8;
        let (key, fields, version) = match kind {
            0 => (user_action(a, b), [a.clone(), b.clone(), String::new()], None),
            1 => (event(a, b), [a.clone(), b.clone(), String::new()], None),
            2 => (step(a, b), [a.clone(), b.clone(), String::new()], None),
            3 => (api(a, b).unwrap(), [a.clone(), b.clone(), String::new()], None),
            4 => (notification(a, b).unwrap(), [a.clone(), b.clone(), String::new()], None),
            _ => (business(a, b, c, version), fields.clone(), version),
        };
        let tuple = (kind, fields, version);
        let before = seen.entry(key.clone()).or_insert_with(|| tuple.clone());
        assert_eq!(*before, tuple, "{key}");
    }
    assert!(seen.len() > 20_000, "the fields vary: {}", seen.len());
}

#[test]
fn keys_have_the_documented_form() {
    let at = |ms| SystemTime::UNIX_EPOCH + Duration::from_millis(ms);

    assert_eq!(user_action("u:1", "a%b"), "user:u%3A1:action:a%25b");
    assert_eq!(schedule("s", at(1_500)), "schedule:s:ts:1500");
    assert_eq!(event("e\n1", "h"), "event:e%0A1:handler:h");
    assert_eq!(business("order", "42", "ship", Some(1)), "biz:order:42:ship:v1");
    assert_eq!(window("u", "op", Duration::from_secs(300), at(900_000)).unwrap(), "window:u:op:3");
    // printf '{"a":1}' | sha256sum
    assert_eq!(content("op", &json!({ "a": 1 })).unwrap(), "content:op:015abd7f5cc57a2dd94b7590f04ad808");
    assert_eq!(
        api("POST /x", &json!({ "a": 1.0 })).unwrap(),
        "api:POST /x:hash:015abd7f5cc57a2dd94b7590f04ad808"
    );
}

#[test]
fn a_key_of_255_bytes_stays_and_a_longer_one_is_hashed_and_not_cut() {
    let longest = "x".repeat(255 - "user::action:a".len());
    assert_eq!(user_action(&longest, "a").len(), 255);
    assert!(user_action(&longest, "a").starts_with("user:x"));

    let hashed = [format!("{longest}x"), format!("{longest}y")].map(|user| user_action(&user, "a"));
    assert!(hashed.iter().all(|key| key.starts_with("user:sha256:") && key.len() == 44), "{hashed:?}");
    assert_ne!(hashed[0], hashed[1]);
    let long = "é".repeat(200);
    assert!(step("r", &long).len() <= 255 && content(&long, &1).unwrap().len() <= 255);
}

#[test]
fn a_step_has_the_key_that_its_code_is_given() {
    let run = "018f0000-0000-7000-8000-000000000001";
    assert_eq!(step(run, "a:b/c#2"), idempotency_key(run, "a:b/c#2"));
}

#[test]
fn windows_lie_side_by_side_also_before_1970() {
    let minute = Duration::from_secs(60);
    let before = |ms| SystemTime::UNIX_EPOCH - Duration::from_millis(ms);

    assert_eq!(window("u", "o", minute, before(1)).unwrap(), "window:u:o:-1");
    assert_eq!(window("u", "o", minute, before(60_000)).unwrap(), "window:u:o:-1");
    assert_eq!(window("u", "o", minute, before(60_001)).unwrap(), "window:u:o:-2");
    let none = window("u", "o", Duration::ZERO, before(1));
    assert!(matches!(none, Err(KeyError::NoWindow)));
}

#[test]
fn content_that_is_no_json_has_no_key() {
    let by_pair: HashMap<(u8, u8), u8> = HashMap::from([((1, 2), 3)]);
    assert!(matches!(content("op", &by_pair), Err(KeyError::NotJson(_))));
    assert!(matches!(content("op", &u64::MAX), Err(KeyError::NotExact(_))));
}
