//! From an `anyhow::Error` of user code to the failure that is reported.

use std::any::Any;
use std::error::Error as StdError;

use kagzi_proto::v1;

use crate::step_error::{NonRetryableError, RetryAfterError, StepError, StepFailure};
use crate::{codes, limits, payload, retry_policy};

/// Reads code and retryability from the first typed error in the chain; the message is the whole chain.
pub(crate) fn of_error(error: &anyhow::Error) -> v1::Failure {
    let message = format!("{error:#}");
    if let Some(failure) = find::<StepFailure>(error) {
        return v1::Failure {
            retry_after_ms: failure.retry_after.map_or(0, retry_policy::millis),
            details: failure.details.as_ref().and_then(|details| payload::encode(details).ok()),
            ..new(&failure.code, message, failure.non_retryable)
        };
    }
    if find::<NonRetryableError>(error).is_some() {
        return new(codes::NON_RETRYABLE, message, true);
    }
    if let Some(failure) = find::<RetryAfterError>(error) {
        let retry_after_ms = retry_policy::millis(failure.retry_after);
        return v1::Failure { retry_after_ms, ..new(codes::RETRY_AFTER, message, false) };
    }
    if let Some(failure) = find::<StepError>(error) {
        return new(&failure.code, message, false);
    }
    new(codes::ERROR, message, false)
}

/// A caught panic, with its text where it has one.
pub(crate) fn of_panic(panic: &(dyn Any + Send)) -> v1::Failure {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("panicked without a message");
    new(codes::PANIC, text.to_owned(), false)
}

pub(crate) fn new(code: &str, message: String, non_retryable: bool) -> v1::Failure {
    let code = if code.is_empty() { codes::ERROR } else { code };
    v1::Failure {
        code: truncate(code.to_owned(), limits::CODE_BYTES_MAX),
        message: truncate(message, limits::MESSAGE_BYTES_MAX),
        non_retryable,
        ..v1::Failure::default()
    }
}

/// Looks twice: `anyhow` itself knows the types given to `.context(..)`, which its `chain()` hides, and
/// `chain()` knows the sources nested in other people's errors, which a plain downcast misses.
fn find<E: StdError + Send + Sync + 'static>(error: &anyhow::Error) -> Option<&E> {
    error.downcast_ref::<E>().or_else(|| error.chain().find_map(|cause| cause.downcast_ref::<E>()))
}

fn truncate(mut text: String, bytes_max: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anyhow::{Context, anyhow};

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("gateway said no")]
    struct Gateway(#[source] NonRetryableError);

    #[test]
    fn a_typed_error_is_found_below_context_and_foreign_errors() {
        let error = anyhow::Error::new(Gateway(NonRetryableError::new("card stolen"))).context("charging");

        let failure = of_error(&error);

        assert!(failure.non_retryable);
        assert_eq!(failure.code, "NON_RETRYABLE");
        assert_eq!(failure.message, "charging: gateway said no: card stolen");
    }

    #[test]
    fn a_typed_error_given_as_context_is_found() {
        let error = Err::<(), _>(anyhow!("socket closed"))
            .context(RetryAfterError::new("busy", Duration::from_secs(7)))
            .context("outermost")
            .unwrap_err();

        let failure = of_error(&error);

        assert_eq!((failure.code.as_str(), failure.retry_after_ms), ("RETRY_AFTER", 7000));
    }

    #[test]
    fn a_step_failure_carries_code_delay_and_details() {
        let failure = StepFailure::new("CARD_DECLINED", "no money")
            .retry_after(Duration::from_millis(1500))
            .details(["a", "b"]);

        let reported = of_error(&failure.into());

        assert_eq!((reported.code.as_str(), reported.message.as_str()), ("CARD_DECLINED", "no money"));
        assert_eq!(reported.retry_after_ms, 1500);
        assert_eq!(reported.details.unwrap().data, r#"["a","b"]"#);
    }

    #[test]
    fn an_untyped_error_is_retryable_and_the_code_of_a_failed_step_survives() {
        let step =
            StepError { step: "a".into(), code: "TIMEOUT".into(), message: "late".into(), attempts: 2 };

        assert_eq!(of_error(&anyhow!("boom")), new("ERROR", "boom".into(), false));
        assert_eq!(of_error(&anyhow::Error::new(step).context("order")).code, "TIMEOUT");
    }

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let message = format!("x{}", "é".repeat(limits::MESSAGE_BYTES_MAX));

        let cut = of_error(&anyhow!(message)).message;

        assert_eq!(cut.len(), limits::MESSAGE_BYTES_MAX - 1);
        assert!(cut.ends_with('é'));
    }
}
