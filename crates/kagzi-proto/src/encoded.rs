//! How payloads that only their owners can read are marked. Part of the contract: SDKs write it, tools show
//! it.

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::v1::Payload;

/// The content type of a failure handler's input: a `WorkflowFailedEvent` that the server composed.
pub const WORKFLOW_FAILED: &str = "application/vnd.kagzi.workflow-failed+json";

/// The content type of an encrypted payload, followed by `; key=ID`.
pub const ENCRYPTED: &str = "application/vnd.kagzi.encrypted";

/// The content type of a compressed payload.
pub const COMPRESSED: &str = "application/vnd.kagzi.deflate";

/// The id of the key that a payload of this content type is encrypted with.
pub fn key_id(content_type: &str) -> Option<&str> {
    content_type.strip_prefix(ENCRYPTED)?.strip_prefix("; key=")
}

/// A payload where only text fits: in the message and the details of an error. It is a data URL.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedText(pub Payload);

const BEGIN: &str = "data:";
const BASE64: &str = ";base64,";

impl EncodedText {
    /// The payload of a data URL in base64. Any other text is none.
    pub fn parse(text: &str) -> Option<EncodedText> {
        let (content_type, data) = text.strip_prefix(BEGIN)?.split_once(BASE64)?;
        let data = STANDARD.decode(data).ok()?;
        Some(EncodedText(Payload { data: data.into(), content_type: content_type.to_owned() }))
    }
}

impl std::fmt::Display for EncodedText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{BEGIN}{}{BASE64}{}", self.0.content_type, STANDARD.encode(&self.0.data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_comes_back_from_its_text() {
        let payload = Payload { data: vec![0, 255, 7].into(), content_type: format!("{ENCRYPTED}; key=k1") };
        let text = EncodedText(payload.clone()).to_string();

        assert_eq!(text, "data:application/vnd.kagzi.encrypted; key=k1;base64,AP8H");
        assert_eq!(EncodedText::parse(&text), Some(EncodedText(payload)));
    }

    #[test]
    fn other_texts_are_none() {
        for text in ["card declined", "data:text/plain,hello", "data:text/plain;base64,%"] {
            assert_eq!(EncodedText::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_key_is_read_from_the_content_type() {
        assert_eq!(key_id("application/vnd.kagzi.encrypted; key=k1"), Some("k1"));
        assert_eq!(key_id("application/json"), None);
    }
}
