//! What is done about failures, cell by cell: `snapshots/rulings__*.snap` is the table that was reviewed.

use std::fmt::Write;

use kagzi_catalogue::handling::{http, known_codes::KNOWN_CODES, matrix::MATRIX};
use kagzi_model::{
    Backoff, Class, Failure, HandlingRule, RetryPolicy, Rules, Ruling, Rung, Severity, Source, rule_on,
};

/// One status of every line, and the ends of the ranges.
const STATUSES: [u32; 19] =
    [400, 401, 402, 403, 404, 408, 409, 410, 422, 425, 429, 499, 500, 501, 502, 503, 504, 505, 599];

fn of(code: &str) -> Failure {
    Failure::new(code, "it failed")
}

/// A failure as the SDK reports it: the status, and the code that it stands for.
fn answered(status: u32) -> Failure {
    let line = u16::try_from(status).ok().and_then(http::find).expect("the status of an error");
    of(line.code).http(status)
}

fn alone(kind: Option<&str>, failure: &Failure) -> Ruling {
    rule_on(kind, failure, &Rules::default())
}

fn delays(policy: &RetryPolicy) -> String {
    let times = policy.maximum_attempts.map_or("-".to_owned(), |times| format!("{times}×"));
    match (policy.backoff, policy.initial_interval_ms, policy.maximum_interval_ms) {
        (Some(shape), Some(first), Some(longest)) => format!("{times} {} {first}..{longest}", shape.name()),
        _ => times,
    }
}

fn line(table: &mut String, kind: Option<&str>, failure: &Failure) {
    let ruling = alone(kind, failure);
    let mut words = vec![
        kind.unwrap_or("-").to_owned(),
        failure.code.to_string(),
        failure.http_status.map_or("-".to_owned(), |status| status.to_string()),
        ruling.class.value.name().to_owned(),
        ruling.first.value.name().to_owned(),
        delays(&ruling.policy()),
    ];
    let more = [
        ruling.before_retry.map(|said| format!("before: {}", said.value)),
        ruling.hint.map(|said| format!("hint: {}", said.value)),
        ruling.interaction.map(|said| said.value.to_string()),
        ruling.severity.map(|said| said.value.name().to_owned()),
        ruling.message.map(|said| said.value),
        Some(format!("({})", ruling.first.from)),
    ];
    words.push(more.into_iter().flatten().collect::<Vec<_>>().join("; "));
    writeln!(table, "{}", words.join(" | ")).unwrap();
}

fn kinds() -> Vec<&'static str> {
    let mut kinds: Vec<_> = MATRIX.iter().map(|cell| cell.kind).collect();
    kinds.dedup();
    kinds
}

#[test]
fn every_cell_is_ruled_as_it_was_reviewed() {
    let mut table = String::from("kind | code | http | class | first | tries | more\n");
    for cell in MATRIX {
        let is_class = Class::from_name(cell.code).is_some();
        let failure = if is_class { of("X").described(cell.code, "") } else { of(cell.code) };
        line(&mut table, Some(cell.kind), &failure);
    }
    table.push('\n');
    for status in STATUSES {
        line(&mut table, None, &answered(status));
    }
    table.push('\n');
    for kind in kinds() {
        for status in STATUSES {
            line(&mut table, Some(kind), &answered(status));
        }
    }
    table.push('\n');
    for (code, _) in KNOWN_CODES {
        line(&mut table, None, &of(code));
    }
    for class in Class::ALL {
        line(&mut table, None, &of("MINE").described(class.name(), ""));
    }
    line(&mut table, None, &of("MINE"));
    insta::assert_snapshot!(table);
}

#[test]
fn every_class_is_produced_by_something() {
    let failures = KNOWN_CODES.iter().map(|(code, _)| of(code)).chain(STATUSES.map(answered));
    let produced: Vec<Class> = failures.map(|failure| alone(None, &failure).class.value).collect();

    for class in Class::ALL {
        assert!(produced.contains(&class), "{class:?}");
    }
}

#[test]
fn the_step_wins_over_the_namespace_over_the_server_over_what_is_built_in_word_by_word() {
    let rule = |first: Option<Rung>, message: &str| HandlingRule {
        kind: Some("external_api".into()),
        code: Some("quota_exceeded".into()),
        first,
        message: Some(message.to_owned()),
        ..HandlingRule::default()
    };
    let (step, namespace, server) = (
        [rule(None, "of the step")],
        [rule(Some(Rung::Escalate), "of the namespace")],
        [rule(Some(Rung::Retry), "of the server")],
    );
    let rules = Rules { step: &step, namespace: &namespace, server: &server };
    let ruling = rule_on(Some("external_api"), &of("quota_exceeded"), &rules);

    assert_eq!(ruling.message.as_ref().map(|said| said.value.as_str()), Some("of the step"));
    assert_eq!(ruling.message.map(|said| said.from), Some(Source::StepRule(1)));
    assert_eq!((ruling.first.value, ruling.first.from), (Rung::Escalate, Source::NamespaceRule(1)));
    let built_in = Source::Matrix { kind: "external_api", code: "quota_exceeded" };
    assert_eq!((ruling.class.value, ruling.class.from), (Class::UserResolvable, built_in));
    let elsewhere = rule_on(Some("database"), &of("quota_exceeded"), &rules);
    assert_eq!(elsewhere.first.from, Source::Class, "the rules are for another kind");
}

#[test]
fn the_first_rule_of_a_list_that_fits_counts_by_kind_code_class_and_status() {
    let first = |rung| HandlingRule { first: Some(rung), ..HandlingRule::default() };
    let rules = [
        HandlingRule { http: Some(503), ..first(Rung::Escalate) },
        HandlingRule { code: Some("transient".into()), ..first(Rung::AskUser) },
        HandlingRule { kind: Some("database".into()), ..first(Rung::Rollback) },
    ];
    let rules = Rules { server: &rules, ..Rules::default() };
    let at = |kind, failure: &Failure| rule_on(kind, failure, &rules).first;

    assert_eq!(at(None, &answered(503)).value, Rung::Escalate);
    assert_eq!(at(None, &answered(502)).value, Rung::AskUser);
    assert_eq!(at(Some("database"), &of("MINE")).from, Source::ServerRule(3));
    assert_eq!(at(None, &of("MINE")).from, Source::Class);
}

#[test]
fn a_rule_can_say_the_class_and_then_holds_for_it() {
    let rules = [HandlingRule {
        code: Some("MINE".into()),
        class: Some(Class::Catastrophic),
        severity: Some(Severity::High),
        ..HandlingRule::default()
    }];
    let ruling = rule_on(None, &of("MINE"), &Rules { namespace: &rules, ..Rules::default() });

    assert_eq!((ruling.class.value, ruling.class.from), (Class::Catastrophic, Source::NamespaceRule(1)));
    assert_eq!((ruling.first.value, ruling.first.from), (Rung::Escalate, Source::Class));
}

#[test]
fn the_reporters_class_wins_and_one_that_only_repeats_the_status_hides_nothing() {
    let permanent = answered(503).described("permanent", "");
    let ruling = alone(Some("external_api"), &permanent);
    assert_eq!((ruling.class.value, ruling.class.from), (Class::Permanent, Source::Reporter));
    assert_eq!(ruling.first.value, Rung::Rollback);

    let denied = of("permission_denied").described("user_resolvable", "");
    assert_eq!(alone(Some("file_operation"), &denied).first.value, Rung::Rollback);
    assert_eq!(alone(None, &denied).first.value, Rung::AskUser);

    let own_word = of("MINE").described("gold_customers", "");
    assert_eq!(alone(None, &own_word).class.value, Class::Unknown);
}

#[test]
fn what_the_reporter_calls_useless_is_not_retried() {
    assert!(!alone(None, &answered(503).non_retryable()).retries);
    assert!(alone(None, &answered(503)).retries);
    assert_eq!(alone(None, &answered(503)).asked_ms(&answered(503).retry_after(7)), Some(7));
    assert_eq!(alone(None, &answered(404)).asked_ms(&answered(404).retry_after(7)), None);
}

#[test]
fn delays_are_one_word_and_numbers_of_executions_another() {
    let slower = [HandlingRule {
        code: Some("service_unavailable".into()),
        retry: Some(RetryPolicy { initial_interval_ms: Some(120_000), ..RetryPolicy::default() }),
        ..HandlingRule::default()
    }];
    let rules = Rules { namespace: &slower, ..Rules::default() };
    let policy = rule_on(Some("external_api"), &of("service_unavailable"), &rules).policy();

    assert_eq!(policy.initial_interval_ms, Some(120_000));
    assert_eq!(policy.maximum_interval_ms, None, "60 s of the matrix would cut it");
    assert_eq!((policy.maximum_attempts, policy.backoff), (Some(5), None));
    assert_eq!(policy.check(), Ok(()));
    let limited = alone(Some("llm_invocation"), &of("rate_limited")).policy();
    assert_eq!((limited.maximum_attempts, limited.backoff), (Some(10), Some(Backoff::FromHeader)));
}
