//! Failures, in and out.

use kagzi_model::Failure;
use kagzi_proto::v1;

pub fn failure(failure: &Failure) -> v1::Failure {
    v1::Failure {
        code: failure.code.to_string(),
        message: failure.message.clone(),
        non_retryable: failure.non_retryable,
        retry_after_ms: failure.retry_after_ms.unwrap_or(0),
        details: failure
            .details
            .as_ref()
            .map(|text| v1::Payload { data: text.clone().into(), content_type: "text/plain".into() }),
        class: failure.class.as_deref().unwrap_or_default().to_owned(),
    }
}

/// Reads a failure; what is too long is cut, what makes no sense is clamped: an error report is never refused.
pub fn read_failure(failure: Option<v1::Failure>) -> Failure {
    let v1::Failure { code, message, non_retryable, retry_after_ms, details, class } =
        failure.unwrap_or_default();
    let code = if code.is_empty() { "ERROR" } else { &code };
    let details = details.map(|details| String::from_utf8_lossy(&details.data).into_owned());
    let failure = Failure::new(code, &message)
        .retry_after(retry_after_ms)
        .described(&class, &details.unwrap_or_default());
    if non_retryable { failure.non_retryable() } else { failure }
}
