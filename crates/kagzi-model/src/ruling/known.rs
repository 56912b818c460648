//! What Kagzi itself knows of failures, from the catalogue, in the words of a rule.

use kagzi_catalogue::handling::{
    Tries,
    http::{self, HttpLine},
    known_codes,
    matrix::{self, Cell},
};

use super::{Said, Source, handling_rule::HandlingRule};
use crate::{Class, Failure, Millis, Name, RetryPolicy};

/// The class of a failure whose reporter and whose rules name none.
pub fn class(kind: Option<&str>, failure: &Failure) -> Option<Said<Class>> {
    let by_kind = kind.and_then(|kind| matrix::find(kind, &failure.code));
    let by_status = || failure.http_status.and_then(http::find);
    by_kind
        .map(|cell| Said { value: cell.class, from: of_cell(cell) })
        .or_else(|| by_status().map(|line| Said { value: line.class, from: of_line(line) }))
        .or_else(|| known_codes::class(&failure.code).map(|value| Said { value, from: Source::Code }))
}

/// What is known, the nearest first: kind and code, kind and class, HTTP status, class. A line that would
/// sort the failure into another class than the one it has is passed over: the reporter knows better.
pub fn words(kind: Option<&str>, failure: &Failure, class: Class) -> Vec<Said<HandlingRule>> {
    let by_code = kind.and_then(|kind| matrix::find(kind, &failure.code));
    let by_class = kind.and_then(|kind| matrix::find(kind, class.name()));
    let by_status = failure.http_status.and_then(http::find);
    let cells = [by_code, by_class].into_iter().flatten().filter(|cell| cell.class == class).map(cell);
    let line = by_status.filter(|line| line.class == class).map(line);
    let tries = class.executions().map(|times| Said {
        value: HandlingRule { retry: Some(policy(&Tries::times(times))), ..HandlingRule::default() },
        from: Source::Class,
    });
    cells.chain(line).chain(tries).collect()
}

fn of_cell(cell: &Cell) -> Source {
    Source::Matrix { kind: cell.kind, code: cell.code }
}

fn of_line(line: &HttpLine) -> Source {
    Source::Http { from: line.statuses.0, to: line.statuses.1 }
}

fn cell(cell: &Cell) -> Said<HandlingRule> {
    let value = HandlingRule {
        first: Some(cell.first),
        retry: cell.tries.as_ref().map(policy),
        before_retry: cell.before_retry.map(Name::from),
        hint: cell.hint.map(Name::from),
        message: cell.message.map(str::to_owned),
        interaction: cell.interaction.map(Name::from),
        severity: cell.severity,
        ..HandlingRule::default()
    };
    Said { value, from: of_cell(cell) }
}

fn line(line: &HttpLine) -> Said<HandlingRule> {
    let value = HandlingRule {
        first: Some(line.first),
        retry: line.tries.as_ref().map(policy),
        before_retry: line.before_retry.map(Name::from),
        hint: line.hint.map(Name::from),
        message: Some(line.reason.to_owned()),
        ..HandlingRule::default()
    };
    Said { value, from: of_line(line) }
}

fn policy(tries: &Tries) -> RetryPolicy {
    let millis = |ms: u64| Millis::try_from(ms).unwrap_or(Millis::MAX);
    RetryPolicy {
        maximum_attempts: tries.executions,
        backoff: tries.delays.map(|(shape, ..)| shape),
        initial_interval_ms: tries.delays.map(|(_, first, _)| millis(first)),
        maximum_interval_ms: tries.delays.map(|(.., longest)| millis(longest)),
        ..RetryPolicy::default()
    }
}
