//! Values as payloads: JSON, in bytes that nobody copies on the way.

use bytes::Bytes;
use kagzi_proto::v1;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) const JSON: &str = "application/json";

/// Why a payload could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("content type '{0}' is not {JSON}")]
    ContentType(String),
    #[error("{0}")]
    Json(#[from] serde_json::Error),
}

pub(crate) fn encode<T: Serialize + ?Sized>(value: &T) -> Result<v1::Payload, serde_json::Error> {
    let data = Bytes::from(serde_json::to_vec(value)?);
    Ok(v1::Payload { data, content_type: JSON.to_owned() })
}

/// No payload, or an empty one, reads as JSON `null`: a run started without input fits `()` and
/// `Option`, and is refused by everything else.
pub(crate) fn decode<T: DeserializeOwned>(payload: Option<&v1::Payload>) -> Result<T, DecodeError> {
    let Some(payload) = payload.filter(|payload| !payload.data.is_empty()) else {
        return Ok(serde_json::from_slice(b"null")?);
    };
    let media_type = payload.content_type.split(';').next().unwrap_or_default().trim();
    if !media_type.is_empty() && !media_type.eq_ignore_ascii_case(JSON) && !media_type.ends_with("+json") {
        return Err(DecodeError::ContentType(payload.content_type.clone()));
    }
    Ok(serde_json::from_slice(&payload.data)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reads_as_unit_but_not_as_a_number() {
        assert!(decode::<()>(None).is_ok());
        assert!(decode::<()>(Some(&v1::Payload::default())).is_ok());
        assert!(decode::<u32>(None).is_err());
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
