//! What went wrong, as it is stored.

use serde::{Deserialize, Serialize};

use crate::{
    Millis, Name,
    limits::{ERROR_BYTES_MAX, ERROR_CODE_BYTES_MAX, WAIT_MS_MAX},
};

/// A failed attempt in the words of whoever reported it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// For programs: `PANIC`, `TIMEOUT`, `CARD_DECLINED`. Retry rules match on it.
    pub code: Name,
    /// For people; cut at 4 KiB.
    pub message: String,
    /// The reporter says that trying again is useless.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub non_retryable: bool,
    /// The reporter says when to try again, instead of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<Millis>,
    /// The reporter's own kind of failure: `transient`, `permanent`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<Name>,
    /// More for programs, as text; cut at 4 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// The status of the HTTP answer that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
}

impl Failure {
    /// A failure with a code and a message, both cut to their limits.
    pub fn new(code: &str, message: &str) -> Self {
        Failure {
            code: Name::from(cut(code, ERROR_CODE_BYTES_MAX)),
            message: cut(message, ERROR_BYTES_MAX).to_owned(),
            non_retryable: false,
            retry_after_ms: None,
            class: None,
            details: None,
            http_status: None,
        }
    }

    /// Adds the reporter's class and details, cut to their limits; empty ones say nothing.
    pub fn described(mut self, class: &str, details: &str) -> Self {
        self.class = (!class.is_empty()).then(|| Name::from(cut(class, ERROR_CODE_BYTES_MAX)));
        self.details = (!details.is_empty()).then(|| cut(details, ERROR_BYTES_MAX).to_owned());
        self
    }

    /// Adds the status of an HTTP answer; what is none says nothing.
    pub fn http(mut self, status: u32) -> Self {
        self.http_status = u16::try_from(status).ok().filter(|status| (100..=599).contains(status));
        self
    }

    /// Marks the failure as final.
    pub fn non_retryable(mut self) -> Self {
        self.non_retryable = true;
        self
    }

    /// Sets the reporter's own delay; nonsense is clamped into `0..=` ten years, zero means "by policy".
    pub fn retry_after(mut self, ms: Millis) -> Self {
        self.retry_after_ms = (ms > 0).then(|| ms.min(WAIT_MS_MAX));
        self
    }
}

/// The longest prefix of at most `max` bytes that ends between characters.
fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_cut_between_characters() {
        let failure = Failure::new("X", &"€".repeat(2000));

        assert_eq!(failure.message.len(), 4095);
    }

    #[test]
    fn a_senseless_retry_delay_is_clamped() {
        assert_eq!(Failure::new("X", "").retry_after(-5).retry_after_ms, None);
        assert_eq!(Failure::new("X", "").retry_after(i64::MAX).retry_after_ms, Some(WAIT_MS_MAX));
    }
}
