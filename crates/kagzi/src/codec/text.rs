//! Errors: their messages and details are text on the server, and leave this process as encoded as everything
//! else.

use std::panic::AssertUnwindSafe;

use bytes::Bytes;
use futures_util::FutureExt;
use kagzi_proto::EncodedText;
use kagzi_proto::v1::{Failure, Payload};

use super::{CodecError, Codecs};
use crate::limits::{DETAILS_BYTES_MAX, MESSAGE_BYTES_MAX};

/// What a message is to a codec.
const TEXT: &str = "application/vnd.kagzi.text";

/// Said instead of a message that no codec would take: nothing readable leaves, not even by mistake.
const WITHHELD: &str = "the message could not be encoded and was withheld";

impl Codecs {
    /// The failure as it is stored. Code, class and delay stay readable.
    pub(crate) async fn encode_failure(&self, mut failure: Failure) -> Failure {
        if self.is_empty() {
            return failure;
        }
        failure.message = self.encode_text(failure.message).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "an error message was withheld");
            WITHHELD.to_owned()
        });
        failure.details = match failure.details.take() {
            Some(details) => self.encode_details(details).await,
            None => None,
        };
        failure
    }

    async fn encode_details(&self, details: Payload) -> Option<Payload> {
        let content_type = details.content_type.clone();
        let encoded = self.encode_caught(details).await.ok()?;
        if encoded.content_type == content_type {
            return Some(encoded);
        }
        let text = EncodedText(encoded).to_string();
        let small = text.len() <= DETAILS_BYTES_MAX;
        small.then(|| Payload { data: text.into(), content_type: "text/plain".to_owned() })
    }

    /// The failure as it was reported. Messages of the server itself are plain and come back as they are.
    pub(crate) async fn decode_failure(&self, failure: &mut Failure) -> Result<(), CodecError> {
        if self.is_empty() {
            return Ok(());
        }
        failure.message = self.decode_text(std::mem::take(&mut failure.message)).await?;
        if let Some(details) = &mut failure.details
            && let Some(EncodedText(encoded)) =
                std::str::from_utf8(&details.data).ok().and_then(EncodedText::parse)
        {
            let decoded = self.decode(encoded.clone()).await?;
            if decoded != encoded {
                *details = decoded;
            }
        }
        Ok(())
    }

    /// A failure must get through: where a codec panics, its text is withheld.
    async fn encode_caught(&self, payload: Payload) -> Result<Payload, CodecError> {
        let encoding = AssertUnwindSafe(async { self.encode(payload).await });
        encoding.catch_unwind().await.unwrap_or_else(|_| Err(CodecError::new("a codec panicked")))
    }

    /// Cuts the message until what becomes of it fits.
    async fn encode_text(&self, mut text: String) -> Result<String, CodecError> {
        loop {
            let plain = Payload { data: Bytes::from(text.clone()), content_type: TEXT.to_owned() };
            let encoded = self.encode_caught(plain).await?;
            if encoded.content_type == TEXT {
                return Ok(text);
            }
            let encoded = EncodedText(encoded).to_string();
            if encoded.len() <= MESSAGE_BYTES_MAX {
                return Ok(encoded);
            }
            if text.is_empty() {
                return Err(CodecError::new("even an empty message is too long once it is encoded"));
            }
            text.truncate(text.floor_char_boundary(text.len() * 3 / 4));
        }
    }

    pub(super) async fn decode_text(&self, text: String) -> Result<String, CodecError> {
        let Some(EncodedText(encoded)) = EncodedText::parse(&text) else { return Ok(text) };
        let decoded = self.decode(encoded).await?;
        if decoded.content_type != TEXT {
            return Ok(text);
        }
        Ok(String::from_utf8_lossy(&decoded.data).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::tests::Sign;
    use crate::failure;

    fn codecs() -> Codecs {
        Codecs::default().and(Sign(1))
    }

    fn failed(message: &str) -> Failure {
        let details = Payload { data: r#"["card"]"#.into(), content_type: "application/json".into() };
        Failure { details: Some(details), ..failure::new("CARD_DECLINED", message.to_owned(), false) }
    }

    #[tokio::test]
    async fn message_and_details_come_back_and_the_code_stays_readable() {
        let sealed = codecs().encode_failure(failed("card 4242 declined")).await;

        assert_eq!(sealed.code, "CARD_DECLINED");
        assert!(!sealed.message.contains("4242"), "{}", sealed.message);
        assert!(!sealed.details.as_ref().unwrap().data.windows(4).any(|bytes| bytes == b"card"));
        let mut opened = sealed;
        codecs().decode_failure(&mut opened).await.unwrap();
        assert_eq!(opened, failed("card 4242 declined"));
    }

    #[tokio::test]
    async fn a_long_message_is_cut_so_that_the_server_does_not_cut_it() {
        let long = "é".repeat(MESSAGE_BYTES_MAX);

        let mut failure = codecs().encode_failure(failed(&long)).await;

        assert!(failure.message.len() <= MESSAGE_BYTES_MAX);
        codecs().decode_failure(&mut failure).await.unwrap();
        assert!(failure.message.len() > MESSAGE_BYTES_MAX / 2 && long.starts_with(&failure.message));
    }

    #[tokio::test]
    async fn plain_messages_of_the_server_and_data_urls_of_users_are_left_alone() {
        for message in ["step timed out", "data:image/png;base64,AP8H", ""] {
            let mut failure = failure::new("X", message.to_owned(), false);
            codecs().decode_failure(&mut failure).await.unwrap();
            assert_eq!(failure.message, message);
        }
    }
}
