use crate::terminal::harmless_json;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kagzi::client::Payload;
use kagzi_proto::{COMPRESSED, EncodedText, key_id};
use serde::Serialize;
use serde_json::value::RawValue;

/// A payload as it is shown: JSON as JSON, everything else as base64 with its content type.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum PayloadView {
    // Kept as text: parsing into a `Value` would reorder keys and round numbers that are not f64 or u64.
    Json(Box<RawValue>),
    Opaque { content_type: String, base64: String },
}

impl PayloadView {
    /// A payload without bytes is no payload.
    pub fn of(payload: Option<Payload>) -> Option<Self> {
        let payload = payload.filter(|payload| !payload.data.is_empty())?;
        if is_json(&payload.content_type)
            && let Ok(json) = serde_json::from_slice(&payload.data)
        {
            return Some(PayloadView::Json(json));
        }
        // Details of errors are text; encoded ones are a payload inside.
        let inside = std::str::from_utf8(&payload.data).ok().and_then(EncodedText::parse);
        let (data, content_type) = match inside {
            Some(EncodedText(inside)) => (inside.data, inside.content_type),
            None => (payload.data, payload.content_type),
        };
        Some(PayloadView::Opaque { content_type, base64: STANDARD.encode(&data) })
    }

    /// Details of a failure: a text that is no JSON came as it is.
    pub fn of_details(details: &serde_json::Value) -> Option<Self> {
        let encoded = details.as_str().filter(|text| EncodedText::parse(text).is_some());
        let payload = match encoded {
            Some(text) => payload(text.to_owned(), "text/plain"),
            None => json(details.to_string()),
        };
        PayloadView::of(Some(payload))
    }

    pub fn text(&self) -> String {
        match self {
            PayloadView::Json(json) => harmless_json(json.get()).into_owned(),
            PayloadView::Opaque { content_type, base64 } => {
                closed(content_type).unwrap_or_else(|| format!("{content_type} base64:{base64}"))
            }
        }
    }
}

/// An error message as people read it: one that only the owner of a key can read is named, not shown.
pub fn readable(message: &str) -> String {
    let encoded = EncodedText::parse(message);
    encoded
        .and_then(|EncodedText(payload)| closed(&payload.content_type))
        .unwrap_or_else(|| message.to_owned())
}

/// The same for every text inside a piece of JSON, which is otherwise left as it was written.
pub fn readable_json(json: &str) -> String {
    let mut texts = json.split('"').map(readable);
    let first = texts.next().unwrap_or_default();
    texts.fold(first, |json, text| json + "\"" + &text)
}

/// What is said instead of bytes that mean nothing to anybody here.
fn closed(content_type: &str) -> Option<String> {
    match key_id(content_type) {
        Some(key) => Some(format!("encrypted (key {key})")),
        None => (content_type == COMPRESSED).then(|| "compressed".to_owned()),
    }
}

pub fn json(data: impl Into<bytes::Bytes>) -> Payload {
    payload(data, "application/json")
}

fn payload(data: impl Into<bytes::Bytes>, content_type: &str) -> Payload {
    Payload { data: data.into(), content_type: content_type.to_owned() }
}

/// The contract says that an empty content type means JSON.
fn is_json(content_type: &str) -> bool {
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    media_type.is_empty() || media_type == "application/json" || media_type.ends_with("+json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(data: &'static [u8], content_type: &str) -> String {
        let payload = Payload { data: data.into(), content_type: content_type.into() };
        serde_json::to_string(&PayloadView::of(Some(payload))).unwrap()
    }

    #[test]
    fn json_is_shown_as_it_was_written() {
        let text = br#"{"z":1,"a":123456789012345678901234567890}"#;

        assert_eq!(shown(text, "").as_bytes(), text);
        assert_eq!(shown(text, "application/json; charset=utf-8").as_bytes(), text);
        assert_eq!(shown(text, "application/problem+json").as_bytes(), text);
    }

    #[test]
    fn other_bytes_are_shown_as_base64() {
        let expected = r#"{"content_type":"image/png","base64":"/wA="}"#;

        assert_eq!(shown(&[0xff, 0x00], "image/png"), expected);
    }

    #[test]
    fn bytes_that_only_claim_to_be_json_are_shown_as_base64() {
        assert_eq!(shown(b"{", "application/json"), r#"{"content_type":"application/json","base64":"ew=="}"#);
    }

    const SEALED: &str = "data:application/vnd.kagzi.encrypted; key=k1;base64,AP8H";

    #[test]
    fn what_only_the_owner_of_a_key_can_read_is_named() {
        let content_type = "application/vnd.kagzi.encrypted; key=k1";
        let payload = Payload { data: vec![0xff].into(), content_type: content_type.into() };
        let details = Payload { data: SEALED.into(), content_type: "text/plain".into() };

        for payload in [payload, details] {
            assert_eq!(PayloadView::of(Some(payload)).unwrap().text(), "encrypted (key k1)");
        }
        assert_eq!(readable(SEALED), "encrypted (key k1)");
        assert_eq!(readable("card declined"), "card declined");
        let event = format!(r#"{{"code":"BUSY","message":"{SEALED}","n":1}}"#);
        assert_eq!(readable_json(&event), r#"{"code":"BUSY","message":"encrypted (key k1)","n":1}"#);
        let plain = r#"{"a":"b \" c","d":""}"#;
        assert_eq!(readable_json(plain), plain);
        assert!(shown(&[0xff], content_type).contains("base64"), "programs get the bytes");
    }

    #[test]
    fn an_empty_payload_is_none() {
        assert!(PayloadView::of(None).is_none());
        assert!(PayloadView::of(Some(Payload::default())).is_none());
    }
}
