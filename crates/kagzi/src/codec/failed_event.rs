//! The input of a failure handler: the server wraps an encoded message and an encoded input into plain JSON.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kagzi_proto::WORKFLOW_FAILED;
use kagzi_proto::v1::Payload;
use serde_json::Value;

use super::{CodecError, Codecs};

const INPUT: &str = "original_input";
const INPUT_TYPE: &str = "original_content_type";

impl Codecs {
    /// A run's input: decoded, and if it is the story of a failed run, decoded within.
    pub(crate) async fn decode_input(&self, input: Payload) -> Result<Payload, CodecError> {
        let input = self.decode(input).await?;
        if self.is_empty() || input.content_type != WORKFLOW_FAILED {
            return Ok(input);
        }
        let Ok(mut event) = serde_json::from_slice::<Value>(&input.data) else { return Ok(input) };
        if let Some(error) = event["error"].as_str() {
            event["error"] = self.decode_text(error.to_owned()).await?.into();
        }
        let text = |field: &str| event[field].as_str().unwrap_or_default();
        if let Ok(data) = BASE64_STANDARD.decode(text(INPUT)) {
            let encoded = Payload { data: data.into(), content_type: text(INPUT_TYPE).to_owned() };
            let original = self.decode(encoded).await?;
            event[INPUT] = BASE64_STANDARD.encode(&original.data).into();
            event[INPUT_TYPE] = original.content_type.into();
        }
        Ok(Payload { data: event.to_string().into(), content_type: input.content_type })
    }
}
