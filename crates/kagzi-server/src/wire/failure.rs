//! Failures, in and out.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kagzi_model::{Failure, codes};
use kagzi_proto::v1;

pub fn failure(failure: &Failure) -> v1::Failure {
    v1::Failure {
        code: failure.code.to_string(),
        message: failure.message.clone(),
        non_retryable: failure.non_retryable,
        retry_after_ms: failure.retry_after_ms.unwrap_or(0),
        details: failure.details.as_deref().map(details),
        class: failure.class.as_deref().unwrap_or_default().to_owned(),
        http_status: failure.http_status.map_or(0, u32::from),
    }
}

/// Reads a failure; what is too long is cut, what makes no sense is clamped: an error report is never
/// refused.
pub fn read_failure(failure: Option<v1::Failure>) -> Failure {
    let v1::Failure { code, message, non_retryable, retry_after_ms, details, class, http_status } =
        failure.unwrap_or_default();
    let code = if code.is_empty() { codes::ERROR } else { &code };
    let details = details.map(kept);
    let failure = Failure::new(code, &message)
        .retry_after(retry_after_ms)
        .http(http_status)
        .described(&class, &details.unwrap_or_default());
    if non_retryable { failure.non_retryable() } else { failure }
}

/// What a failure without a content type is taken for.
const TEXT: &str = "text/plain";

/// Details are kept as text. What is not text is kept as a `data:` URL, so that it comes back as it was.
fn kept(details: v1::Payload) -> String {
    let v1::Payload { data, content_type } = details;
    let plain = content_type.is_empty() || content_type == TEXT;
    match std::str::from_utf8(&data) {
        Ok(text) if plain && !text.starts_with(DATA) => text.to_owned(),
        Ok(_) | Err(_) => format!("{DATA}{content_type}{BASE64}{}", STANDARD.encode(&data)),
    }
}

const DATA: &str = "data:";
const BASE64: &str = ";base64,";

/// As it was sent. A `data:` URL that was too long and was cut is shown as the text that is left.
fn details(kept: &str) -> v1::Payload {
    let encoded = kept.strip_prefix(DATA).and_then(|rest| rest.split_once(BASE64));
    let decoded = encoded.and_then(|(kind, data)| Some((kind, STANDARD.decode(data).ok()?)));
    match decoded {
        Some((content_type, data)) => {
            v1::Payload { data: data.into(), content_type: content_type.to_owned() }
        }
        None => v1::Payload { data: kept.to_owned().into(), content_type: TEXT.into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_come_back_with_their_bytes_and_their_content_type() {
        for (data, content_type) in [
            (&b"a stack trace"[..], TEXT),
            (br#"{"at":"charge"}"#, "application/json"),
            (&[0, 159, 146, 150], "application/octet-stream"),
            (&[0xff, 0xfe], ""),
            (b"data:text/plain;base64,aGk=", TEXT),
        ] {
            let sent = v1::Payload { data: data.to_vec().into(), content_type: content_type.into() };
            let said = v1::Failure { details: Some(sent.clone()), ..Default::default() };

            assert_eq!(failure(&read_failure(Some(said))).details, Some(sent));
        }
    }

    #[test]
    fn the_status_of_an_http_answer_comes_back_and_nonsense_is_none() {
        for (said, kept) in [(429, 429), (0, 0), (42, 0), (600, 0), (65_536 + 429, 0)] {
            let sent = v1::Failure { http_status: said, ..Default::default() };

            assert_eq!(failure(&read_failure(Some(sent))).http_status, kept);
        }
    }

    #[test]
    fn text_without_a_content_type_is_kept_as_text() {
        let details = v1::Payload { data: b"plain".to_vec().into(), content_type: String::new() };
        let kept = read_failure(Some(v1::Failure { details: Some(details), ..Default::default() }));

        assert_eq!(kept.details.as_deref(), Some("plain"));
    }
}
