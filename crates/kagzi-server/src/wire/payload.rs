//! Payloads go through as they are.

use kagzi_model::Payload;
use kagzi_proto::v1;

pub fn payload(payload: Payload) -> v1::Payload {
    v1::Payload { data: payload.data, content_type: payload.content_type.to_string() }
}
