//! From an `anyhow::Error` of user code to the failure that is reported.

use std::any::Any;
use std::error::Error as StdError;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use kagzi_proto::v1;

use crate::http_failure::HttpFailure;
use crate::run::continue_as_new::ContinueAsNew;
use crate::step_error::{Finality, NonRetryableError, RetryAfterError, StepError, StepFailure};
use crate::worker::equipment::Equipment;
use crate::{codes, known_errors, limits, payload, retry_policy};

/// Reads code and retryability from the first typed error in the chain; the message is the whole chain.
#[cfg(test)]
pub(crate) fn of_error(error: &anyhow::Error) -> v1::Failure {
    of_error_with(error, &Equipment::default())
}

fn of_error_with(error: &anyhow::Error, equipment: &Equipment) -> v1::Failure {
    let message = format!("{error:#}");
    let said = find::<StepFailure>(error).cloned().or_else(|| equipment.typed(error));
    if let Some(failure) = said.or_else(|| find::<HttpFailure>(error).cloned().map(StepFailure::from)) {
        return v1::Failure {
            http_status: failure.http_status.map_or(0, u32::from),
            retry_after_ms: failure.retry_after.map_or(0, retry_after_ms),
            details: encode_details(failure.details.as_ref()),
            class: truncate(failure.class.clone(), limits::CODE_BYTES_MAX),
            ..new(&failure.code, message, failure.non_retryable)
        };
    }
    if find::<NonRetryableError>(error).is_some() {
        return new(codes::NON_RETRYABLE, message, true);
    }
    if let Some(failure) = find::<RetryAfterError>(error) {
        let retry_after_ms = retry_after_ms(failure.retry_after);
        return v1::Failure { retry_after_ms, ..new(codes::RETRY_AFTER, message, false) };
    }
    if let Some(failure) = find::<StepError>(error) {
        // What a step calls useless to repeat is useless to repeat with the whole run.
        let non_retryable = failure.finality == Finality::NonRetryable;
        return v1::Failure {
            details: encode_details(failure.details.as_ref()),
            class: failure.class.clone(),
            http_status: failure.http_status.map_or(0, u32::from),
            ..new(&failure.code, message, non_retryable)
        };
    }
    known_errors::read(error, &message).unwrap_or_else(|| new(codes::ERROR, message, false))
}

/// The same for an error that code of other people returned. Its text may panic, and so may its `Drop`.
pub(crate) fn of_returned(error: anyhow::Error, equipment: &Equipment) -> v1::Failure {
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let failure = of_error_with(&error, equipment);
        drop(error);
        failure
    }));
    caught.unwrap_or_else(|panic| of_panic(&*panic))
}

/// The same for an error that its owner goes on with.
pub(crate) fn of_shared(error: &anyhow::Error, equipment: &Equipment) -> v1::Failure {
    catch_unwind(AssertUnwindSafe(|| of_error_with(error, equipment)))
        .unwrap_or_else(|panic| of_panic(&*panic))
}

/// The step whose error this is, if it is one's.
pub(crate) fn step_of(error: &anyhow::Error) -> String {
    catch_unwind(AssertUnwindSafe(|| find::<StepError>(error).map(|failed| failed.step.clone())))
        .ok()
        .flatten()
        .unwrap_or_default()
}

/// The input of the next generation, if this is the word that the run continues in place.
pub(crate) fn next_input(error: &anyhow::Error) -> Option<v1::Payload> {
    catch_unwind(AssertUnwindSafe(|| find::<ContinueAsNew>(error).map(|next| next.input.clone())))
        .ok()
        .flatten()
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

/// Looks three times: `anyhow` itself knows the types given to `.context(..)`, which its `chain()` hides;
/// `chain()` knows the sources nested in other people's errors, which a plain downcast misses; and neither
/// sees the outermost of an error that came in a box.
pub(crate) fn find<E: StdError + Send + Sync + 'static>(error: &anyhow::Error) -> Option<&E> {
    error
        .downcast_ref::<E>()
        .or_else(|| error.chain().find_map(|cause| look::<E>(cause)))
        .or_else(|| look::<E>(&**error.downcast_ref::<Box<dyn StdError + Send + Sync>>()?))
}

/// One link of the chain. Pointers to errors are errors themselves, of another type; and an I/O error hides
/// the error it was made of, its `source()` is already the one below.
fn look<'a, E: StdError + 'static>(cause: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    cause
        .downcast_ref::<E>()
        .or_else(|| cause.downcast_ref::<Box<E>>().map(|boxed| &**boxed))
        .or_else(|| cause.downcast_ref::<Arc<E>>().map(|shared| &**shared))
        .or_else(|| look::<E>(cause.downcast_ref::<io::Error>()?.get_ref()?))
}

/// At least 1, because 0 means "by policy" on the wire, and "at once" was asked for.
fn retry_after_ms(delay: Duration) -> i64 {
    retry_policy::millis(delay).max(1)
}

/// Details are for people who look into a failure; a dump that is too long for the server is left out.
fn encode_details(details: Option<&serde_json::Value>) -> Option<v1::Payload> {
    let details = payload::encode(details?).ok()?;
    (details.data.len() <= limits::DETAILS_BYTES_MAX).then_some(details)
}

fn truncate(mut text: String, bytes_max: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}

#[cfg(test)]
mod tests {
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
            .class("transient")
            .details(["a", "b"]);

        let reported = of_error(&failure.into());

        assert_eq!((reported.code.as_str(), reported.message.as_str()), ("CARD_DECLINED", "no money"));
        assert_eq!((reported.retry_after_ms, reported.class.as_str()), (1500, "transient"));
        assert_eq!(reported.details.unwrap().data, r#"["a","b"]"#);
    }

    #[test]
    fn an_http_answer_and_an_io_error_say_what_they_are_wherever_they_stand() {
        let answer = HttpFailure::new(503).header("retry-after", "9");
        let reported = of_error(&anyhow::Error::new(answer).context("refunding"));
        assert_eq!((reported.code.as_str(), reported.class.as_str()), ("service_unavailable", "transient"));
        assert_eq!((reported.http_status, reported.retry_after_ms), (503, 9_000));
        assert_eq!(reported.message, "refunding: HTTP 503: The receiver is away for a moment.");

        let refused = io::Error::new(io::ErrorKind::ConnectionRefused, "refused");
        let reported = of_error(&anyhow::Error::new(Nested(Box::new(refused))).context("asking"));
        assert_eq!((reported.code.as_str(), reported.class.as_str()), ("connection_failed", "transient"));
        assert!(!reported.non_retryable);
    }

    #[test]
    fn an_untyped_error_is_retryable_and_the_code_of_a_failed_step_survives() {
        let last = new("TIMED_OUT", "late".into(), false);
        let step = StepError::new("a".into(), last, 2, Finality::Exhausted);

        let reported = of_error(&anyhow::Error::new(step).context("order"));

        assert_eq!(of_error(&anyhow!("boom")), new("ERROR", "boom".into(), false));
        assert_eq!((reported.code.as_str(), reported.non_retryable), ("TIMED_OUT", false));
    }

    #[test]
    fn a_step_that_is_useless_to_repeat_makes_the_run_useless_to_repeat() {
        let last = new("STOLEN", "card stolen".into(), true);
        let step = StepError::new("charge".into(), last, 1, Finality::NonRetryable);

        assert!(of_error(&step.into()).non_retryable);
    }

    #[derive(Debug, thiserror::Error)]
    #[error("three levels up")]
    struct Nested(#[source] Box<dyn StdError + Send + Sync>);

    #[test]
    fn a_step_failure_is_found_at_the_end_of_a_chain_of_foreign_errors() {
        let failure = StepFailure::new("BUSY", "queue full").retry_after(Duration::ZERO);
        let io = io::Error::other(Nested(Box::new(failure)));

        let reported = of_error(&anyhow::Error::new(Nested(Box::new(io))).context("upload"));

        assert_eq!(reported.code, "BUSY");
        assert_eq!(reported.retry_after_ms, 1, "at once is not the same as by policy");
    }

    #[test]
    fn a_typed_error_is_found_behind_pointers_and_inside_io_errors() {
        #[derive(Debug, thiserror::Error)]
        #[error("shared")]
        struct Shared(#[source] Arc<NonRetryableError>);
        let last_word = NonRetryableError::new("no such user");

        let hidden = io::Error::other(last_word.clone());
        assert!(of_error(&hidden.into()).non_retryable);
        let shared = Shared(Arc::new(last_word.clone()));
        assert!(of_error(&shared.into()).non_retryable);
        let boxed: Box<dyn StdError + Send + Sync> = Box::new(io::Error::other(Box::new(last_word)));
        assert!(of_error(&anyhow::Error::from_boxed(boxed)).non_retryable);
    }

    #[test]
    fn details_too_long_for_the_server_are_left_out() {
        let failure = StepFailure::new("X", "x").details("x".repeat(limits::DETAILS_BYTES_MAX));

        assert_eq!(of_error(&failure.into()).details, None);
    }

    #[test]
    fn a_long_message_is_cut_at_a_character() {
        let message = format!("x{}", "é".repeat(limits::MESSAGE_BYTES_MAX));

        let cut = of_error(&anyhow!(message)).message;

        assert_eq!(cut.len(), limits::MESSAGE_BYTES_MAX - 1);
        assert!(cut.ends_with('é'));
    }
}
