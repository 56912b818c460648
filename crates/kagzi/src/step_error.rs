//! What a step may return to say more than "it failed", and what it gets back when it failed for good.

use std::time::Duration;

use serde::Serialize;

/// Fails the step at once, whatever its retry policy says.
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
}

/// A failure with everything that can be said about it. The code is what `non_retryable_errors` and
/// callers compare.
#[derive(Debug, Clone, Default, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct StepFailure {
    /// For programs, e.g. `CARD_DECLINED`.
    pub code: String,
    /// For people.
    pub message: String,
    /// True: no further attempt, whatever the policy says.
    pub non_retryable: bool,
    /// Instead of the policy's delay.
    pub retry_after: Option<Duration>,
    /// Anything worth keeping next to the failure.
    pub details: Option<serde_json::Value>,
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

    /// Keeps a value next to the failure. One that is no JSON is kept as its error text.
    pub fn details(mut self, details: impl Serialize) -> StepFailure {
        let details = serde_json::to_value(details);
        self.details = Some(details.unwrap_or_else(|error| serde_json::Value::String(error.to_string())));
        self
    }
}

/// A step has failed for good. Found in the chain of the error that `ctx.run` returns:
/// `error.downcast_ref::<StepError>()`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("step '{step}' failed after {attempts} attempt(s): {message}")]
pub struct StepError {
    /// The step's path, e.g. `item-7/charge#2`.
    pub step: String,
    /// For programs, e.g. `TIMEOUT`, `PANIC`, or a code of your own.
    pub code: String,
    /// What the last attempt said.
    pub message: String,
    /// Executions in total.
    pub attempts: u32,
}
