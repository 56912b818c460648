//! Values as payloads: JSON, in bytes that nobody copies on the way.

use bytes::Bytes;
use kagzi_proto::v1;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;

pub(crate) const JSON: &str = "application/json";

/// Why a payload could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("content type '{0}' is not {JSON}")]
    ContentType(String),
    #[error("{0}")]
    Json(#[from] serde_json::Error),
}

/// Bytes and how to read them. Payloads of this SDK are JSON unless a codec changed them; those of other
/// programs may be anything.
///
/// ```
/// # fn main() -> Result<(), kagzi::Error> {
/// let payload = kagzi::client::Payload::json(&["tea", "milk"])?;
/// assert_eq!(payload.decode::<Vec<String>>()?, ["tea", "milk"]);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Payload {
    /// What it says. Shared, not copied, when the payload is cloned.
    pub data: Bytes,
    /// How to read it; empty means `application/json`.
    pub content_type: String,
}

impl Payload {
    /// The value as JSON.
    pub fn json(value: &(impl Serialize + ?Sized)) -> Result<Payload, Error> {
        let encoded = encode(value).map(Payload::from_proto);
        encoded.map_err(|error| Error::Encode { what: "the payload", message: error.to_string() })
    }

    /// What it says, as a value.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, Error> {
        decode(Some(self)).map_err(|error| Error::undecodable("the payload", &error))
    }

    pub(crate) fn from_proto(payload: v1::Payload) -> Payload {
        Payload { data: payload.data, content_type: payload.content_type }
    }

    pub(crate) fn into_proto(self) -> v1::Payload {
        v1::Payload { data: self.data, content_type: self.content_type }
    }
}

/// Payloads of the wire and our own are read alike.
pub(crate) trait Content {
    fn data(&self) -> &[u8];
    fn content_type(&self) -> &str;
}

impl Content for Payload {
    fn data(&self) -> &[u8] {
        &self.data
    }
    fn content_type(&self) -> &str {
        &self.content_type
    }
}

impl Content for v1::Payload {
    fn data(&self) -> &[u8] {
        &self.data
    }
    fn content_type(&self) -> &str {
        &self.content_type
    }
}

pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<v1::Payload, serde_json::Error> {
    let data = Bytes::from(serde_json::to_vec(value)?);
    Ok(v1::Payload { data, content_type: JSON.to_owned() })
}

/// No payload, or an empty one, reads as JSON `null`: a run started without input fits `()` and
/// `Option`, and is refused by everything else.
pub(crate) fn decode<T: DeserializeOwned>(payload: Option<&impl Content>) -> Result<T, DecodeError> {
    let Some(payload) = payload.filter(|payload| !payload.data().is_empty()) else {
        return Ok(serde_json::from_slice(b"null")?);
    };
    let media_type = payload.content_type().split(';').next().unwrap_or_default().trim();
    if !media_type.is_empty() && !media_type.eq_ignore_ascii_case(JSON) && !media_type.ends_with("+json") {
        return Err(DecodeError::ContentType(payload.content_type().to_owned()));
    }
    Ok(serde_json::from_slice(payload.data())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reads_as_unit_but_not_as_a_number() {
        assert!(decode::<()>(None::<&Payload>).is_ok());
        assert!(decode::<()>(Some(&v1::Payload::default())).is_ok());
        assert!(decode::<u32>(None::<&Payload>).is_err());
    }

    #[test]
    fn another_content_type_is_refused_by_name() {
        let payload = v1::Payload { data: Bytes::from_static(b"1"), content_type: "image/png".into() };

        let error = decode::<u32>(Some(&payload)).unwrap_err();

        assert_eq!(error.to_string(), "content type 'image/png' is not application/json");
    }

    #[test]
    fn a_charset_does_not_matter() {
        let content_type = "application/json; charset=utf-8".to_owned();
        let payload = v1::Payload { data: Bytes::from_static(b"7"), content_type };

        assert_eq!(decode::<u32>(Some(&payload)).unwrap(), 7);
    }

    #[test]
    fn a_kind_of_json_is_json() {
        let content_type = kagzi_proto::WORKFLOW_FAILED.to_owned();
        let payload = v1::Payload { data: Bytes::from_static(b"7"), content_type };

        assert_eq!(decode::<u32>(Some(&payload)).unwrap(), 7);
    }
}
