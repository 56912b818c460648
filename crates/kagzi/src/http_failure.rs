//! From the answer of an HTTP server to a failure with code, class and delay.

use std::fmt;
use std::time::{Duration, SystemTime};

use kagzi_catalogue::Rung;
use kagzi_catalogue::handling::http;

use crate::retry_after;
use crate::step_error::StepFailure;

/// An HTTP answer that tells of an error. Its status gives it a code and a class, and says whether the same
/// again can help: docs/failures.md lists them. `Retry-After` is kept.
///
/// ```
/// # use kagzi::workflow::{HttpFailure, StepFailure};
/// # use std::time::Duration;
/// fn check(status: u16, retry_after: &str, body: &str) -> anyhow::Result<()> {
///     if status < 400 {
///         return Ok(());
///     }
///     Err(HttpFailure::new(status).header("Retry-After", retry_after).message(body).into())
/// }
/// # assert!(check(200, "", "").is_ok());
/// # assert!(check(503, "7", "busy").is_err());
///
/// let limited = StepFailure::from(HttpFailure::new(429).header("retry-after", "7"));
/// assert_eq!((limited.code.as_str(), limited.class.as_str()), ("rate_limited", "transient"));
/// assert_eq!((limited.retry_after, limited.non_retryable), (Some(Duration::from_secs(7)), false));
///
/// // A status that is not worth another attempt, unless you know better.
/// assert!(StepFailure::from(HttpFailure::new(404)).non_retryable);
/// assert!(!StepFailure::from(HttpFailure::new(404).retryable()).non_retryable);
/// // A code of your own.
/// assert_eq!(StepFailure::from(HttpFailure::new(402).code("quota_exceeded")).code, "quota_exceeded");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpFailure {
    status: u16,
    message: String,
    code: Option<String>,
    retry_after: Option<Duration>,
    retryable: bool,
}

impl HttpFailure {
    /// An answer with this status.
    pub fn new(status: u16) -> HttpFailure {
        HttpFailure { status, message: String::new(), code: None, retry_after: None, retryable: false }
    }

    /// A header of the answer. `Retry-After` is understood, in seconds and as a date, at most a day; others
    /// are passed over, so that all of them may be given.
    pub fn header(self, name: &str, value: &str) -> HttpFailure {
        self.header_at(SystemTime::now(), name, value)
    }

    fn header_at(mut self, now: SystemTime, name: &str, value: &str) -> HttpFailure {
        if name.eq_ignore_ascii_case("retry-after") {
            self.retry_after = retry_after::delay(value, now).or(self.retry_after);
        }
        self
    }

    /// What people should read, e.g. the body's text.
    pub fn message(mut self, message: impl Into<String>) -> HttpFailure {
        self.message = message.into();
        self
    }

    /// A code of your own instead of the status's.
    pub fn code(mut self, code: impl Into<String>) -> HttpFailure {
        self.code = Some(code.into());
        self
    }

    /// The same again can help, whatever the status says: a 404 of something that is about to be there.
    pub fn retryable(mut self) -> HttpFailure {
        self.retryable = true;
        self
    }
}

impl fmt::Display for HttpFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HttpFailure { status, message, .. } = self;
        match http::find(*status) {
            _ if !message.is_empty() => write!(f, "HTTP {status}: {message}"),
            Some(line) => write!(f, "HTTP {status}: {}", line.reason),
            None => write!(f, "HTTP {status}"),
        }
    }
}

impl std::error::Error for HttpFailure {}

impl From<HttpFailure> for StepFailure {
    fn from(answer: HttpFailure) -> StepFailure {
        let line = http::find(answer.status);
        let code = answer.code.clone().or_else(|| line.map(|line| line.code.to_owned()));
        let failure = StepFailure::new(code.unwrap_or_default(), answer.to_string());
        StepFailure {
            class: line.map_or("", |line| line.class.name()).to_owned(),
            non_retryable: !answer.retryable && line.is_some_and(|line| line.first != Rung::Retry),
            retry_after: answer.retry_after,
            http_status: Some(answer.status),
            ..failure
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status: u16) -> (String, String, bool) {
        let failure = StepFailure::from(HttpFailure::new(status));
        assert_eq!(failure.http_status, Some(status));
        (failure.code, failure.class, failure.non_retryable)
    }

    #[test]
    fn every_status_of_the_table_has_its_code_its_class_and_its_retryability() {
        for line in http::HTTP {
            let (code, class, non_retryable) = said(line.statuses.0);
            let known = http::find(line.statuses.0).unwrap();
            assert_eq!((code.as_str(), class.as_str()), (known.code, known.class.name()));
            assert_eq!(non_retryable, known.first != Rung::Retry, "{}", line.statuses.0);
        }
        assert_eq!(said(302), (String::new(), String::new(), false));
    }

    #[test]
    fn only_retry_after_is_read_from_the_headers_in_any_case() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777 - 30);
        let with = |name, value| HttpFailure::new(503).header_at(now, name, value).retry_after;

        assert_eq!(with("RETRY-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(with("Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_secs(30)));
        assert_eq!((with("retry-after", "soon"), with("age", "7")), (None, None));
    }
}
