//! What happens to payloads between your code and the server: compression, encryption, or something of yours.

#[cfg(feature = "compression")]
pub(crate) mod compression;
mod decode_incoming;
#[cfg(feature = "encryption")]
pub(crate) mod encryption;
#[cfg(any(feature = "compression", feature = "encryption", test))]
mod envelope;
mod failed_event;
mod text;

use std::sync::Arc;

use kagzi_proto::v1;

pub(crate) use decode_incoming::UNDECODABLE;

#[cfg(feature = "compression")]
pub use compression::CompressionCodec;
#[cfg(feature = "encryption")]
pub use encryption::EncryptionCodec;

pub use crate::payload::Payload;

/// Changes payloads before they leave this process, and changes them back when they return.
///
/// Set on clients ([`Client::codec`](crate::Client::codec)), workers
/// ([`WorkerBuilder::codec`](crate::worker::WorkerBuilder::codec)) and the embedded engine. Several form a
/// chain: the first that is set encodes first and decodes last, so compress before you encrypt. They are
/// applied to inputs, results, outputs and progress, and to the messages and details of errors; error codes
/// and classes stay readable, because retry policies compare them.
///
/// An encoded payload is known by its content type. `decode` must hand back what it does not know unchanged:
/// runs that began before the codec was set have plain payloads, and what the server itself says is plain.
pub trait PayloadCodec: Send + Sync + 'static {
    /// Called with what your code made, or with what the codec before made of it.
    fn encode(&self, payload: Payload) -> Result<Payload, CodecError>;

    /// The opposite. An error here pauses a run or fails a call, so say what to do about it.
    fn decode(&self, payload: Payload) -> Result<Payload, CodecError>;
}

/// Why a codec could not do its work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CodecError(String);

impl CodecError {
    /// The error with this message. It may be stored in the clear, so it must not quote payloads or keys.
    pub fn new(message: impl Into<String>) -> CodecError {
        CodecError(message.into())
    }
}

/// The chain. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Codecs {
    /// In the order of encoding.
    chain: Arc<[Arc<dyn PayloadCodec>]>,
}

impl Codecs {
    pub(crate) fn and(&self, codec: impl PayloadCodec) -> Codecs {
        let last: Arc<dyn PayloadCodec> = Arc::new(codec);
        Codecs { chain: self.chain.iter().cloned().chain([last]).collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chain.is_empty()
    }

    pub(crate) fn encode(&self, payload: v1::Payload) -> Result<v1::Payload, CodecError> {
        if self.is_empty() {
            return Ok(payload);
        }
        let plain = Payload::from_proto(payload);
        let encoded = self.chain.iter().try_fold(plain, |payload, codec| codec.encode(payload));
        encoded.map(Payload::into_proto)
    }

    pub(crate) fn decode(&self, payload: v1::Payload) -> Result<v1::Payload, CodecError> {
        if self.is_empty() {
            return Ok(payload);
        }
        let encoded = Payload::from_proto(payload);
        let plain = self.chain.iter().rev().try_fold(encoded, |payload, codec| codec.decode(payload));
        plain.map(Payload::into_proto)
    }

    fn decode_in_place(&self, payload: &mut Option<v1::Payload>) -> Result<(), CodecError> {
        if let Some(encoded) = payload.take() {
            *payload = Some(self.decode(encoded)?);
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Puts its sign in front, and takes it away again.
    pub(crate) struct Sign(pub(crate) u8);

    impl Sign {
        fn content_type(&self) -> String {
            format!("application/x-sign-{}", self.0)
        }
    }

    impl PayloadCodec for Sign {
        fn encode(&self, payload: Payload) -> Result<Payload, CodecError> {
            envelope::wrap(&payload, |inner| {
                let mut data = vec![self.0];
                data.extend(inner.iter().map(|byte| byte ^ self.0));
                Ok(Payload { data: data.into(), content_type: self.content_type() })
            })
        }

        fn decode(&self, payload: Payload) -> Result<Payload, CodecError> {
            if payload.content_type != self.content_type() {
                return Ok(payload);
            }
            envelope::unwrap(payload.data.iter().skip(1).map(|byte| byte ^ self.0).collect())
        }
    }

    #[test]
    fn a_chain_decodes_in_the_opposite_order() {
        let codecs = Codecs::default().and(Sign(1)).and(Sign(2));
        let plain = v1::Payload { data: "7".into(), content_type: "application/json".into() };

        let encoded = codecs.encode(plain.clone()).unwrap();

        assert_eq!((encoded.content_type.as_str(), encoded.data[0]), ("application/x-sign-2", 2));
        assert_eq!(codecs.decode(encoded).unwrap(), plain);
    }

    #[test]
    fn what_no_codec_knows_comes_back_unchanged() {
        let plain = v1::Payload { data: "7".into(), content_type: "application/json".into() };

        assert_eq!(Codecs::default().and(Sign(1)).decode(plain.clone()).unwrap(), plain);
        assert_eq!(Codecs::default().encode(plain.clone()).unwrap(), plain);
    }
}
