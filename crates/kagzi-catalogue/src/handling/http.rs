//! What the status of an HTTP answer means: one code for programs, and what to do about it.

use super::{Class, Rung, Tries};
use crate::Backoff::FromHeader;

/// What a range of statuses means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HttpLine {
    /// The first status and the last.
    pub statuses: (u16, u16),
    /// The code that a failure has when its reporter gives it no other.
    pub code: &'static str,
    pub class: Class,
    pub first: Rung,
    pub tries: Option<Tries>,
    pub before_retry: Option<&'static str>,
    pub hint: Option<&'static str>,
    /// For people.
    pub reason: &'static str,
}

const fn line(statuses: (u16, u16), code: &'static str, class: Class, reason: &'static str) -> HttpLine {
    let first = class.first();
    HttpLine { statuses, code, class, first, tries: None, before_retry: None, hint: None, reason }
}

/// Every line; the first that fits holds.
pub const HTTP: &[HttpLine] = &[
    HttpLine {
        hint: Some("refresh_credentials"),
        ..line((401, 401), "authentication_failed", Class::Recoverable, "The receiver does not know us.")
    },
    HttpLine {
        hint: Some("refresh_credentials"),
        ..line((403, 403), "permission_denied", Class::Recoverable, "The receiver does not let us.")
    },
    HttpLine {
        hint: Some("find_alternative_resource"),
        ..line((404, 404), "not_found", Class::Recoverable, "It is not there.")
    },
    line((408, 408), "timeout", Class::Transient, "The receiver waited too long for us."),
    HttpLine {
        first: Rung::Retry,
        before_retry: Some("refresh"),
        hint: Some("refresh_and_retry"),
        ..line((409, 409), "conflict", Class::Recoverable, "The resource has changed meanwhile.")
    },
    line((422, 422), "invalid_request", Class::UserResolvable, "The receiver cannot use what it was given."),
    line((425, 425), "too_early", Class::Transient, "The receiver wants to be asked again."),
    HttpLine {
        tries: Some(Tries { executions: None, delays: Some((FromHeader, 60_000, 60_000)) }),
        ..line((429, 429), "rate_limited", Class::Transient, "We ask too often.")
    },
    line((400, 499), "client_error", Class::Permanent, "The receiver will not do this."),
    HttpLine {
        tries: Some(Tries::times(5)),
        ..line((502, 504), "service_unavailable", Class::Transient, "The receiver is away for a moment.")
    },
    HttpLine {
        tries: Some(Tries::times(3)),
        ..line((500, 599), "server_error", Class::Transient, "The receiver has failed.")
    },
];

/// What is known of this status, if it tells of an error.
pub fn find(status: u16) -> Option<&'static HttpLine> {
    HTTP.iter().find(|line| (line.statuses.0..=line.statuses.1).contains(&status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_of_an_error_has_a_line_and_no_other_has() {
        assert!((400..=599).all(|status| find(status).is_some()));
        assert!([0, 200, 302, 399, 600, u16::MAX].iter().all(|status| find(*status).is_none()));
    }
}
