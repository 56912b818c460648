//! Deflate, for payloads that are worth it.

use kagzi_proto::COMPRESSED;
use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec_with_limit;

use super::{CodecError, Payload, PayloadCodec, envelope};

/// The usual compromise between time and size.
const LEVEL: u8 = 6;
/// Shorter payloads are left alone: they would hardly shrink.
const BYTES_MIN: usize = 256;
/// A payload that grows beyond this is an accident or an attack.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// Compresses payloads with deflate (feature `compression`). One that would not get smaller is left as it is.
/// Set it before an encrypting codec: what is encrypted cannot be compressed.
#[derive(Debug, Clone, Copy, Default)]
pub struct CompressionCodec;

impl PayloadCodec for CompressionCodec {
    fn encode(&self, payload: Payload) -> Result<Payload, CodecError> {
        if payload.data.len() < BYTES_MIN {
            return Ok(payload);
        }
        let data = envelope::wrap(&payload, |inner| Ok(compress_to_vec(inner, LEVEL)))?;
        if data.len() >= payload.data.len() {
            return Ok(payload);
        }
        Ok(Payload { data: data.into(), content_type: COMPRESSED.to_owned() })
    }

    fn decode(&self, payload: Payload) -> Result<Payload, CodecError> {
        if payload.content_type != COMPRESSED {
            return Ok(payload);
        }
        let inner = decompress_to_vec_with_limit(&payload.data, BYTES_MAX)
            .map_err(|error| CodecError::new(format!("could not decompress the payload: {error}")))?;
        envelope::unwrap(inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(data: String) -> Payload {
        Payload { data: data.into(), content_type: "application/json".into() }
    }

    #[test]
    fn a_long_payload_shrinks_and_comes_back() {
        let long = json(format!("{:?}", vec!["tea"; 1000]));

        let compressed = CompressionCodec.encode(long.clone()).unwrap();

        assert!(compressed.data.len() < long.data.len() / 10);
        assert_eq!(CompressionCodec.decode(compressed).unwrap(), long);
    }

    #[test]
    fn what_would_not_shrink_is_left_alone() {
        let short = json("7".into());
        let noise: Vec<u8> = (0u32..1000).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let noise = Payload { data: noise.into(), content_type: "image/png".into() };

        assert_eq!(CompressionCodec.encode(short.clone()).unwrap(), short);
        let kept = CompressionCodec.encode(noise.clone()).unwrap();
        assert!(kept.data.len() <= noise.data.len());
        assert_eq!(CompressionCodec.decode(kept).unwrap(), noise);
    }

    #[test]
    fn a_bomb_and_broken_bytes_are_told() {
        let bomb = compress_to_vec(&vec![0; BYTES_MAX + 1], LEVEL);
        let of = |data: Vec<u8>| Payload { data: data.into(), content_type: COMPRESSED.into() };

        assert!(CompressionCodec.decode(of(bomb)).is_err());
        assert!(CompressionCodec.decode(of(vec![0xff; 20])).is_err());
    }
}
