//! What is inside an encoded payload: its content type and its bytes, so that both come back as they were.

use bytes::Bytes;

use super::{CodecError, Payload};

/// Hands length of the content type, content type and bytes, in one piece, to whoever encodes them.
pub(super) fn wrap<T>(
    payload: &Payload,
    encode: impl FnOnce(&[u8]) -> Result<T, CodecError>,
) -> Result<T, CodecError> {
    let content_type = payload.content_type.as_bytes();
    let len = u8::try_from(content_type.len()).map_err(|_| {
        CodecError::new(format!("the content type has {} bytes, at most 255 fit", content_type.len()))
    })?;
    let mut inner = Vec::with_capacity(1 + content_type.len() + payload.data.len());
    inner.push(len);
    inner.extend_from_slice(content_type);
    inner.extend_from_slice(&payload.data);
    encode(&inner)
}

/// The opposite.
pub(super) fn unwrap(inner: Vec<u8>) -> Result<Payload, CodecError> {
    let inner = Bytes::from(inner);
    let begin = 1 + usize::from(*inner.first().ok_or_else(broken)?);
    let content_type =
        inner.get(1..begin).and_then(|text| std::str::from_utf8(text).ok()).ok_or_else(broken)?;
    let content_type = content_type.to_owned();
    Ok(Payload { data: inner.slice(begin..), content_type })
}

fn broken() -> CodecError {
    CodecError::new("the payload is broken: its content type is cut off")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_type_and_bytes_come_back() {
        let payload = Payload { data: vec![0, 255].into(), content_type: "image/png".into() };

        let inner = wrap(&payload, |inner| Ok(inner.to_vec())).unwrap();

        assert_eq!(unwrap(inner).unwrap(), payload);
        let empty = wrap(&Payload::default(), |inner| Ok(inner.to_vec())).unwrap();
        assert_eq!(unwrap(empty).unwrap(), Payload::default());
    }

    #[test]
    fn broken_bytes_are_told() {
        assert!(unwrap(vec![]).is_err());
        assert!(unwrap(vec![9, b'a']).is_err());
        assert!(unwrap(vec![1, 0xff]).is_err());
        let endless = Payload { content_type: "x".repeat(256), ..Default::default() };
        assert!(wrap(&endless, |_| Ok(())).is_err());
    }
}
