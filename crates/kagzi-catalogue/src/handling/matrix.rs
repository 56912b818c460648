//! What to do about a failure by the kind of its step and its code.

use super::{Class, Rung, Severity, Tries};
use crate::Backoff::{Exponential, Fixed, FromHeader, FullJitter};

/// One line: failures with this code (or of the class with this name) in steps of this kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    pub kind: &'static str,
    /// A code, or the name of a class: then it holds for what has no line of its own and is of that class.
    pub code: &'static str,
    pub class: Class,
    pub first: Rung,
    pub tries: Option<Tries>,
    /// What a worker does before it tries again.
    pub before_retry: Option<&'static str>,
    /// What another way would have to do.
    pub hint: Option<&'static str>,
    /// What a person is told.
    pub message: Option<&'static str>,
    /// How a person is asked, where a plain question is not enough.
    pub interaction: Option<&'static str>,
    pub severity: Option<Severity>,
}

const fn cell(kind: &'static str, code: &'static str, class: Class, first: Rung) -> Cell {
    Cell {
        kind,
        code,
        class,
        first,
        tries: None,
        before_retry: None,
        hint: None,
        message: None,
        interaction: None,
        severity: None,
    }
}

const fn retry(kind: &'static str, code: &'static str, tries: Tries) -> Cell {
    Cell { tries: Some(tries), ..cell(kind, code, Class::Transient, Rung::Retry) }
}

const fn replan(kind: &'static str, code: &'static str, hint: &'static str) -> Cell {
    Cell { hint: Some(hint), ..cell(kind, code, Class::Recoverable, Rung::Replan) }
}

const fn ask(kind: &'static str, code: &'static str, message: &'static str) -> Cell {
    Cell { message: Some(message), ..cell(kind, code, Class::UserResolvable, Rung::AskUser) }
}

const fn undo(kind: &'static str, code: &'static str, message: &'static str) -> Cell {
    Cell { message: Some(message), ..cell(kind, code, Class::Permanent, Rung::Rollback) }
}

const LLM: &str = "llm_invocation";
const BROWSER: &str = "browser_action";
const FILE: &str = "file_operation";
const API: &str = "external_api";
const DATABASE: &str = "database";
const SEARCH: &str = "web_search";

/// Every line, in the order of the documentation.
pub const MATRIX: &[Cell] = &[
    retry(LLM, "transient", Tries::apart(5, Exponential, 1_000, 30_000)),
    retry(LLM, "rate_limited", Tries::apart(10, FromHeader, 60_000, 60_000)),
    replan(LLM, "context_length_exceeded", "truncate_context"),
    ask(LLM, "content_filtered", "Content was filtered. Please rephrase your request."),
    replan(LLM, "model_unavailable", "use_fallback_model"),
    Cell {
        before_retry: Some("refresh_page"),
        ..retry(BROWSER, "element_not_found", Tries::apart(3, Fixed, 2_000, 2_000))
    },
    retry(BROWSER, "navigation_timeout", Tries::apart(2, Fixed, 5_000, 5_000)),
    Cell {
        interaction: Some("browser_takeover"),
        ..ask(BROWSER, "captcha_detected", "CAPTCHA detected. Please solve it manually.")
    },
    Cell {
        interaction: Some("browser_takeover"),
        ..ask(BROWSER, "login_required", "Login required. Please authenticate.")
    },
    replan(BROWSER, "blocked_by_site", "use_alternative_source"),
    undo(FILE, "permission_denied", "Insufficient permissions."),
    Cell {
        severity: Some(Severity::Critical),
        ..cell(FILE, "disk_full", Class::Catastrophic, Rung::Escalate)
    },
    replan(FILE, "file_not_found", "search_alternative_path"),
    retry(FILE, "file_locked", Tries::apart(5, Exponential, 500, 10_000)),
    replan(API, "authentication_failed", "refresh_credentials"),
    ask(API, "quota_exceeded", "API quota exceeded. Please upgrade or wait."),
    retry(API, "service_unavailable", Tries::apart(5, Exponential, 5_000, 60_000)),
    Cell { before_retry: Some("clear_cache"), ..retry(API, "invalid_response", Tries::times(2)) },
    retry(DATABASE, "connection_failed", Tries::apart(10, Exponential, 1_000, 30_000)),
    retry(DATABASE, "deadlock", Tries::apart(3, FullJitter, 100, 1_000)),
    undo(DATABASE, "constraint_violation", "Data integrity violation."),
    Cell { before_retry: Some("optimize_query"), ..retry(DATABASE, "timeout", Tries::times(2)) },
    retry(SEARCH, "service_unavailable", Tries::times(5)),
    retry(SEARCH, "rate_limited", Tries::apart(10, FromHeader, 60_000, 60_000)),
];

/// The line of this kind and code; `code` may be the name of a class.
pub fn find(kind: &str, code: &str) -> Option<&'static Cell> {
    MATRIX.iter().find(|cell| cell.kind == kind && cell.code == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_lines_answer_the_same_question() {
        for (at, cell) in MATRIX.iter().enumerate() {
            let twin = MATRIX[..at].iter().any(|other| (other.kind, other.code) == (cell.kind, cell.code));
            assert!(!twin, "{} {} stands there twice", cell.kind, cell.code);
        }
    }
}
