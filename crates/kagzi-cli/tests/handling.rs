//! `kagzi handling explain`, by the real program and without a server.

use std::process::{Command, Output};

fn explain(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kagzi"));
    command.env_clear().args(["handling", "explain"]).args(args).output().unwrap()
}

fn words(args: &[&str]) -> serde_json::Value {
    let shown = explain(&[args, &["--output", "json"]].concat());
    assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    serde_json::from_slice(&shown.stdout).unwrap()
}

fn word(view: &serde_json::Value, name: &str) -> (serde_json::Value, String) {
    let words = view["words"].as_array().unwrap();
    let word = words.iter().find(|word| word["word"] == name).unwrap_or_else(|| panic!("{name}: {view}"));
    (word["value"].clone(), word["from"].as_str().unwrap().to_owned())
}

#[test]
fn every_word_is_shown_with_where_it_comes_from() {
    let view = words(&["--kind", "external_api", "--http", "429"]);

    assert_eq!(word(&view, "class"), ("transient".into(), "built in for HTTP 429".into()));
    assert_eq!(word(&view, "first"), ("retry".into(), "built in for HTTP 429".into()));
    assert_eq!(word(&view, "retry.backoff"), ("from_header".into(), "built in for HTTP 429".into()));
    assert_eq!(view["ladder"], serde_json::json!(["retry", "replan", "ask_user", "rollback", "escalate"]));
    let view = words(&["--kind", "external_api", "--http", "503"]);
    let from = "built in for external_api / service_unavailable";
    assert_eq!(word(&view, "retry.initial_interval_ms"), (5_000.into(), from.into()));
}

#[test]
fn a_table_says_the_same_to_people() {
    let shown = explain(&["--kind", "browser_action", "--code", "captcha_detected"]);
    let text = String::from_utf8(shown.stdout).unwrap();

    for part in
        ["ask_user", "browser_takeover", "built in for browser_action / captcha_detected", "→ rollback"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn rules_are_tried_from_files_and_nonsense_in_them_is_named() {
    let here = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = here.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let fine = file(
        "fine.toml",
        "[[rule]]\nkind = \"external_api\"\nhttp = 429\nmessage = \"Slow down.\"\n\
         retry = { maximum_attempts = 2 }\n",
    );
    let view = words(&["--kind", "external_api", "--http", "429", "--namespace-rules", &fine]);
    assert_eq!(word(&view, "message"), ("Slow down.".into(), "rule 1 of the namespace".into()));
    assert_eq!(word(&view, "retry.maximum_attempts"), (2.into(), "rule 1 of the namespace".into()));
    assert_eq!(word(&view, "retry.backoff").1, "built in for HTTP 429");

    for (text, part) in [
        ("[[rule]]\ncode = \"X\"\nfrist = \"retry\"\n", "frist"),
        ("[[rule]]\ncode = \"X\"\n", "rule 1, first is not set: say what to do"),
        ("[[rule]]\ncode = \"X\"\nretry = { jitter = nan }\n", "rule 1, jitter is NaN"),
    ] {
        let refused = explain(&["--code", "X", "--server-rules", &file("wrong.toml", text)]);
        let words = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && words.contains(part), "{part}: {words}");
    }
}

#[test]
fn a_failure_that_nothing_is_said_of_is_a_usage_error() {
    for args in [&[][..], &["--http", "200"], &["--class", "odd"]] {
        assert_eq!(explain(args).status.code(), Some(2), "{args:?}");
    }
    let view = words(&["--class", "permanent", "--non-retryable"]);
    assert_eq!(word(&view, "class"), ("permanent".into(), "the failure says so".into()));
    assert_eq!(word(&view, "retries"), (false.into(), "the failure says so".into()));
}
