//! What a step may return to say more than "it failed", and what it gets back when it failed for good.

use std::time::{Duration, SystemTime};

use kagzi_proto::v1;
use serde::Serialize;

use crate::{retry_after, retry_policy};

/// Fails the step at once, whatever its retry policy says.
///
/// ```
/// # use kagzi::workflow::NonRetryableError;
/// fn check(cents: i64) -> anyhow::Result<()> {
///     if cents < 0 {
///         return Err(NonRetryableError::new("a negative amount stays one").into());
///     }
///     Ok(())
/// }
/// # assert!(check(-1).is_err() && check(1).is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NonRetryableError(pub String);

impl NonRetryableError {
    /// The error with this message.
    pub fn new(message: impl Into<String>) -> NonRetryableError {
        NonRetryableError(message.into())
    }
}

/// Retries the step after exactly this long instead of the policy's delay, e.g. for HTTP 429.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RetryAfterError {
    /// For people.
    pub message: String,
    /// Until the next attempt.
    pub retry_after: Duration,
}

impl RetryAfterError {
    /// The error with this message and delay.
    pub fn new(message: impl Into<String>, retry_after: Duration) -> RetryAfterError {
        RetryAfterError { message: message.into(), retry_after }
    }

    /// The error with the delay of a `Retry-After` header: seconds or a date, at most a day. A header that
    /// cannot be read counts as `fallback`.
    ///
    /// ```
    /// # use {kagzi::workflow::RetryAfterError, std::time::Duration};
    /// let error = RetryAfterError::from_header("rate limited", "120", Duration::from_secs(60));
    /// assert_eq!(error.retry_after, Duration::from_secs(120));
    /// ```
    pub fn from_header(message: impl Into<String>, header: &str, fallback: Duration) -> RetryAfterError {
        RetryAfterError::from_header_at(SystemTime::now(), message.into(), header, fallback)
    }

    fn from_header_at(now: SystemTime, message: String, header: &str, fallback: Duration) -> RetryAfterError {
        let retry_after = retry_after::delay(header, now).unwrap_or(fallback);
        RetryAfterError { message, retry_after }
    }
}

/// A failure with everything that can be said about it. The code is what `non_retryable_errors`,
/// `retryable_errors` and callers compare.
///
/// ```
/// # use {kagzi::workflow::StepFailure, std::time::Duration};
/// let busy = StepFailure::new("BUSY", "no reader").class("transient").retry_after(Duration::from_secs(5));
/// let declined = StepFailure::new("CARD_DECLINED", "the bank said no").non_retryable().details(["4242"]);
/// assert!(declined.non_retryable && !busy.non_retryable);
/// ```
#[derive(Debug, Clone, Default, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct StepFailure {
    /// For programs, e.g. `CARD_DECLINED`.
    pub code: String,
    /// For people.
    pub message: String,
    /// Yours to define, e.g. `transient` or `permanent`.
    pub class: String,
    /// True: no further attempt, whatever the policy says.
    pub non_retryable: bool,
    /// Instead of the policy's delay.
    pub retry_after: Option<Duration>,
    /// Anything worth keeping next to the failure, up to 4 KiB of JSON.
    pub details: Option<serde_json::Value>,
    /// The status of the HTTP answer that it is about; see [`HttpFailure`](crate::workflow::HttpFailure).
    pub http_status: Option<u16>,
}

impl StepFailure {
    /// A failure that is retried by the policy.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> StepFailure {
        StepFailure { code: code.into(), message: message.into(), ..Default::default() }
    }

    /// Makes the failure final.
    pub fn non_retryable(mut self) -> StepFailure {
        self.non_retryable = true;
        self
    }

    /// Retries after exactly this long.
    pub fn retry_after(mut self, delay: Duration) -> StepFailure {
        self.retry_after = Some(delay);
        self
    }

    /// Sorts the failure into a class of yours.
    pub fn class(mut self, class: impl Into<String>) -> StepFailure {
        self.class = class.into();
        self
    }

    /// Keeps a value next to the failure. One that is no JSON is kept as its error text.
    pub fn details(mut self, details: impl Serialize) -> StepFailure {
        let details = serde_json::to_value(details);
        self.details = Some(details.unwrap_or_else(|error| serde_json::Value::String(error.to_string())));
        self
    }

    pub(crate) fn from_proto(failure: v1::Failure) -> StepFailure {
        let retry_after = Some(retry_policy::from_millis(failure.retry_after_ms));
        StepFailure {
            code: failure.code,
            message: failure.message,
            class: failure.class,
            non_retryable: failure.non_retryable,
            retry_after: retry_after.filter(|delay| !delay.is_zero()),
            details: failure.details.map(|details| read_details(&details.data)),
            http_status: http_status(failure.http_status),
        }
    }
}

/// None where the failure is about no HTTP answer.
fn http_status(sent: u32) -> Option<u16> {
    u16::try_from(sent).ok().filter(|status| *status > 0)
}

/// The server keeps details as text. This SDK writes JSON; another may not, and what is cut is JSON no more.
fn read_details(text: &[u8]) -> serde_json::Value {
    serde_json::from_slice(text).unwrap_or_else(|_| String::from_utf8_lossy(text).into())
}

/// A step has failed for good. Found in the chain of the error that `ctx.run` returns:
/// `error.downcast_ref::<StepError>()`.
///
/// ```
/// # use kagzi::{WorkflowContext, workflow::StepError};
/// async fn order(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
///     let charged = ctx.run("charge", async { Ok("charged".to_owned()) }).await;
///     match charged {
///         Ok(charged) => Ok(charged),
///         Err(error) => match error.downcast_ref::<StepError>() {
///             Some(step) if step.is_non_retryable() => Ok(format!("declined: {}", step.message)),
///             Some(step) if step.is_exhausted() || step.is_retry_timeout() => Ok("try later".into()),
///             _ => Err(error),
///         },
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("step '{step}' failed after {attempts} attempt(s): {message}")]
pub struct StepError {
    /// The step's path, e.g. `item-7/charge#2`.
    pub step: String,
    /// For programs, e.g. `TIMED_OUT`, `PANIC`, or a code of your own.
    pub code: String,
    /// What the last attempt said.
    pub message: String,
    /// The class that the last attempt gave itself.
    pub class: String,
    /// What the last attempt kept.
    pub details: Option<serde_json::Value>,
    /// The status of the HTTP answer that the last attempt failed with.
    pub http_status: Option<u16>,
    /// Executions in total.
    pub attempts: u32,
    /// Why there was no further attempt.
    pub finality: Finality,
}

/// Why a failed step is not retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finality {
    /// The step said so.
    NonRetryable,
    /// The policy's lists say so.
    Denied,
    /// Every attempt was used.
    Exhausted,
    /// The next attempt would have begun after the policy's `retry_timeout`.
    RetryTimeout,
    /// The steps of the run used up their common retries or waiting time.
    RunBudget,
    /// Somebody said that what was waited for has failed.
    Rejected,
}

impl StepError {
    /// Every attempt was used.
    pub fn is_exhausted(&self) -> bool {
        self.finality == Finality::Exhausted
    }

    /// The next attempt would have begun too late.
    pub fn is_retry_timeout(&self) -> bool {
        self.finality == Finality::RetryTimeout
    }

    /// Trying again was never an option: the step or the policy's lists said so.
    pub fn is_non_retryable(&self) -> bool {
        matches!(self.finality, Finality::NonRetryable | Finality::Denied)
    }

    pub(crate) fn new(step: String, failure: v1::Failure, attempts: u32, finality: Finality) -> StepError {
        let StepFailure { code, message, class, details, http_status, .. } = StepFailure::from_proto(failure);
        StepError { step, code, message, class, details, http_status, attempts, finality }
    }
}

impl Finality {
    /// As the server says. One that is missing or newer than this SDK is told from the failure.
    pub(crate) fn from_wire(number: i32, failure: &v1::Failure) -> Finality {
        match v1::Finality::try_from(number) {
            Ok(v1::Finality::NonRetryable) => Finality::NonRetryable,
            Ok(v1::Finality::Denied) => Finality::Denied,
            Ok(v1::Finality::Exhausted) => Finality::Exhausted,
            Ok(v1::Finality::RetryTimeout) => Finality::RetryTimeout,
            Ok(v1::Finality::RunBudget) => Finality::RunBudget,
            Ok(v1::Finality::Rejected) => Finality::Rejected,
            Ok(v1::Finality::Unspecified) | Err(_) if failure.non_retryable => Finality::NonRetryable,
            Ok(v1::Finality::Unspecified) | Err(_) => Finality::Exhausted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_gives_the_delay_and_an_unreadable_one_the_fallback() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_757);
        let fallback = Duration::from_secs(60);
        let of = |header| RetryAfterError::from_header_at(now, "busy".into(), header, fallback).retry_after;

        assert_eq!(of("7"), Duration::from_secs(7));
        assert_eq!(of("Sun, 06 Nov 1994 08:49:37 GMT"), Duration::from_secs(20));
        assert_eq!(of("in a while"), fallback);
    }

    #[test]
    fn every_finality_is_read_and_a_missing_one_is_told_from_the_failure() {
        let read = |number: v1::Finality| Finality::from_wire(number.into(), &v1::Failure::default());

        assert_eq!(read(v1::Finality::NonRetryable), Finality::NonRetryable);
        assert_eq!(read(v1::Finality::Denied), Finality::Denied);
        assert_eq!(read(v1::Finality::Exhausted), Finality::Exhausted);
        assert_eq!(read(v1::Finality::RetryTimeout), Finality::RetryTimeout);
        assert_eq!(read(v1::Finality::RunBudget), Finality::RunBudget);
        assert_eq!(read(v1::Finality::Rejected), Finality::Rejected);
        assert_eq!(read(v1::Finality::Unspecified), Finality::Exhausted);
        assert_eq!(Finality::from_wire(77, &v1::Failure::default()), Finality::Exhausted);
        let last_word = v1::Failure { non_retryable: true, ..Default::default() };
        assert_eq!(Finality::from_wire(0, &last_word), Finality::NonRetryable);
    }

    #[test]
    fn a_step_error_names_the_attempts_and_keeps_class_and_details() {
        let details = v1::Payload { data: r#"["a"]"#.into(), content_type: "text/plain".into() };
        let failure = v1::Failure {
            code: "BUSY".into(),
            message: "no reader".into(),
            class: "transient".into(),
            details: Some(details),
            ..Default::default()
        };

        let error = StepError::new("charge".into(), failure, 3, Finality::Exhausted);

        assert_eq!(error.to_string(), "step 'charge' failed after 3 attempt(s): no reader");
        assert_eq!((error.class.as_str(), error.is_exhausted()), ("transient", true));
        assert_eq!(error.details, Some(serde_json::json!(["a"])));
        assert_eq!(read_details(b"plain text"), serde_json::json!("plain text"));
    }
}
