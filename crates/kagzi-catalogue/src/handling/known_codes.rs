//! What a code alone says, whatever its step does; and the other words that people use for codes.

use super::Class;
use crate::codes;

/// Codes whose class is known: those that Kagzi writes, and those that the SDK gives to errors of the
/// standard library.
pub const KNOWN_CODES: &[(&str, Class)] = &[
    (codes::TIMED_OUT, Class::Transient),
    (codes::WORKER_LOST, Class::Transient),
    (codes::LEASE_LOST, Class::Transient),
    (codes::RELEASED, Class::Transient),
    (codes::RETRY_AFTER, Class::Transient),
    (codes::NOT_YET, Class::Transient),
    (codes::NON_RETRYABLE, Class::Permanent),
    (codes::INVALID_INPUT, Class::Permanent),
    (codes::INVALID_OUTPUT, Class::Permanent),
    (codes::INVALID_POLICY, Class::Permanent),
    (codes::NESTED_STEP, Class::Permanent),
    (codes::OUTSIDE_WORKFLOW, Class::Permanent),
    (codes::PAYLOAD_TOO_LARGE, Class::Permanent),
    (codes::HISTORY_TOO_LARGE, Class::Permanent),
    (codes::PANIC, Class::Unknown),
    (codes::ERROR, Class::Unknown),
    ("timeout", Class::Transient),
    ("connection_failed", Class::Transient),
    ("interrupted", Class::Transient),
    ("rate_limited", Class::Transient),
    ("service_unavailable", Class::Transient),
    ("file_locked", Class::Transient),
    ("file_not_found", Class::Recoverable),
    ("permission_denied", Class::UserResolvable),
    ("invalid_request", Class::Permanent),
    ("disk_full", Class::Catastrophic),
    ("out_of_memory", Class::Catastrophic),
    ("store_corrupt", Class::Catastrophic),
];

/// What a code alone says.
pub fn class(code: &str) -> Option<Class> {
    KNOWN_CODES.iter().find(|(known, _)| *known == code).map(|(_, class)| *class)
}

/// What another way would have to do, and the code that it is for: two words for one thing. Alternatives may
/// be registered under either.
pub const HINTS: &[(&str, &str)] = &[
    ("truncate_context", "context_length_exceeded"),
    ("use_fallback_model", "model_unavailable"),
    ("use_alternative_source", "blocked_by_site"),
    ("search_alternative_path", "file_not_found"),
    ("refresh_credentials", "authentication_failed"),
    ("find_alternative_resource", "not_found"),
    ("refresh_and_retry", "conflict"),
];

/// The code that is meant: of a hint its code, of everything else itself.
pub fn meant(word: &str) -> &str {
    HINTS.iter().find(|(hint, _)| *hint == word).map_or(word, |(_, code)| code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handling::{http::HTTP, matrix::MATRIX};

    #[test]
    fn every_hint_that_a_line_gives_is_another_word_for_a_code() {
        let given =
            MATRIX.iter().filter_map(|cell| cell.hint).chain(HTTP.iter().filter_map(|line| line.hint));
        for hint in given {
            assert_ne!(meant(hint), hint, "{hint} leads to no code, so no alternative is ever found by it");
        }
        assert_eq!(meant("CARD_DECLINED"), "CARD_DECLINED");
    }

    #[test]
    fn a_code_is_listed_once() {
        for (at, (code, _)) in KNOWN_CODES.iter().enumerate() {
            assert!(!KNOWN_CODES[..at].iter().any(|(other, _)| other == code), "{code}");
        }
    }
}
