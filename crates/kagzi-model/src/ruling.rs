//! What to do about a failure: class, first rung and how it is tried again, each word with its source.
//!
//! Every word is looked up by itself. First comes who reported the failure, then the rules of the step, of
//! the namespace and of the server, then what Kagzi knows: of the step's kind, of the HTTP status, of the
//! code, of the class. `kagzi handling explain` prints what is found here.

pub mod handling_rule;
mod known;

use serde::Serialize;

use crate::{Class, Failure, Millis, Name, RetryPolicy, Rung, Severity};
use handling_rule::HandlingRule;

/// Who said a word. Rules are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The failure itself says so.
    Reporter,
    StepRule(usize),
    NamespaceRule(usize),
    ServerRule(usize),
    /// A line of the built-in matrix.
    Matrix {
        kind: &'static str,
        code: &'static str,
    },
    /// A line of the built-in table of HTTP statuses.
    Http {
        from: u16,
        to: u16,
    },
    /// The code alone is known.
    Code,
    /// The class decides where nothing else does.
    Class,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Reporter => f.write_str("the failure says so"),
            Source::StepRule(at) => write!(f, "rule {at} of the step"),
            Source::NamespaceRule(at) => write!(f, "rule {at} of the namespace"),
            Source::ServerRule(at) => write!(f, "rule {at} of the server"),
            Source::Matrix { kind, code } => write!(f, "built in for {kind} / {code}"),
            Source::Http { from, to } if from == to => write!(f, "built in for HTTP {from}"),
            Source::Http { from, to } => write!(f, "built in for HTTP {from} to {to}"),
            Source::Code => f.write_str("built in for the code"),
            Source::Class => f.write_str("built in for the class"),
        }
    }
}

/// A word and who said it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Said<T> {
    pub value: T,
    pub from: Source,
}

/// The rules that others have set; each list is read from its beginning, and its first match counts.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rules<'a> {
    pub step: &'a [HandlingRule],
    pub namespace: &'a [HandlingRule],
    pub server: &'a [HandlingRule],
}

/// What is done about a failure.
#[derive(Debug, Clone, PartialEq)]
pub struct Ruling {
    pub class: Said<Class>,
    /// Where it begins to climb.
    pub first: Said<Rung>,
    /// False when the reporter says that the same again is useless, whatever policies allow.
    pub retries: bool,
    /// How it is tried again, the strongest voice first. The step's own policy stands above all of them.
    pub policies: Vec<Said<RetryPolicy>>,
    pub before_retry: Option<Said<Name>>,
    /// What another way would have to do.
    pub hint: Option<Said<Name>>,
    /// What a person is told.
    pub message: Option<Said<String>>,
    /// How a person is asked, where a plain question is not enough.
    pub interaction: Option<Said<Name>>,
    pub severity: Option<Said<Severity>>,
}

impl Ruling {
    /// What fills the fields that the step's own policy leaves open. Delays are one word: where a voice says
    /// anything about them, weaker ones do not add to it, or a first interval could exceed another's longest.
    pub fn policy(&self) -> RetryPolicy {
        self.policies.iter().fold(RetryPolicy::default(), |merged, said| {
            let weaker = if has_delays(&merged) { without_delays(&said.value) } else { said.value.clone() };
            merged.or(&weaker)
        })
    }

    /// How long the receiver wants to be left alone, if the failure says so and a retry comes first.
    pub fn asked_ms(&self, failure: &Failure) -> Option<Millis> {
        failure.retry_after_ms.filter(|_| self.retries && self.first.value == Rung::Retry)
    }
}

/// What is done about this failure of a step of this kind. Total: every failure has a ruling.
pub fn rule(kind: Option<&str>, failure: &Failure, rules: &Rules<'_>) -> Ruling {
    let class = class(kind, failure, rules);
    let set = matching(kind, failure, class.value, rules);
    let known = known::words(kind, failure, class.value);
    let voices: Vec<&Said<HandlingRule>> = set.iter().chain(&known).collect();
    let first = voices.iter().find_map(|voice| said(voice, voice.value.first));
    let policies = voices.iter().filter_map(|voice| said(voice, voice.value.retry.clone()));
    Ruling {
        first: first.unwrap_or(Said { value: class.value.first(), from: Source::Class }),
        retries: !failure.non_retryable,
        policies: policies.collect(),
        before_retry: voices.iter().find_map(|voice| said(voice, voice.value.before_retry.clone())),
        hint: voices.iter().find_map(|voice| said(voice, voice.value.hint.clone())),
        message: voices.iter().find_map(|voice| said(voice, voice.value.message.clone())),
        interaction: voices.iter().find_map(|voice| said(voice, voice.value.interaction.clone())),
        severity: voices.iter().find_map(|voice| said(voice, voice.value.severity)),
        class,
    }
}

/// The class comes first, because lines of the matrix can be written for a class. Words of the reporter that
/// are no class of ours ("yours to define") say nothing here.
fn class(kind: Option<&str>, failure: &Failure, rules: &Rules<'_>) -> Said<Class> {
    // A class that only repeats what the status or the code says is no word of the reporter's own: an SDK
    // fills it in, and it must not hide what is known of the step's kind.
    let reported = failure.class.as_deref().and_then(Class::from_name);
    if let Some(value) = reported
        && known::class(None, failure).is_none_or(|known| known.value != value)
    {
        return Said { value, from: Source::Reporter };
    }
    // A rule written for a class cannot decide the class: it is asked as if nothing were known.
    let by_rule = matching(kind, failure, Class::Unknown, rules).into_iter();
    let mut by_rule = by_rule.filter_map(|rule| said(&rule, rule.value.class));
    let unknown = Said { value: Class::Unknown, from: Source::Class };
    by_rule.next().or_else(|| known::class(kind, failure)).unwrap_or(unknown)
}

/// The first match of each list, the step's before the namespace's before the server's.
fn matching(
    kind: Option<&str>,
    failure: &Failure,
    class: Class,
    rules: &Rules<'_>,
) -> Vec<Said<HandlingRule>> {
    let first = |list: &[HandlingRule], source: fn(usize) -> Source| {
        let at = list.iter().position(|rule| rule.fits(kind, failure, class))?;
        Some(Said { value: list[at].clone(), from: source(at + 1) })
    };
    let found = [
        first(rules.step, Source::StepRule),
        first(rules.namespace, Source::NamespaceRule),
        first(rules.server, Source::ServerRule),
    ];
    found.into_iter().flatten().collect()
}

fn said<T>(voice: &Said<HandlingRule>, word: Option<T>) -> Option<Said<T>> {
    word.map(|value| Said { value, from: voice.from.clone() })
}

fn has_delays(policy: &RetryPolicy) -> bool {
    policy.initial_interval_ms.is_some()
        || policy.maximum_interval_ms.is_some()
        || policy.backoff_coefficient.is_some()
        || policy.backoff.is_some()
        || policy.jitter.is_some()
        || !policy.schedule_ms.is_empty()
}

fn without_delays(policy: &RetryPolicy) -> RetryPolicy {
    RetryPolicy {
        initial_interval_ms: None,
        maximum_interval_ms: None,
        backoff_coefficient: None,
        backoff: None,
        jitter: None,
        schedule_ms: Vec::new(),
        ..policy.clone()
    }
}
