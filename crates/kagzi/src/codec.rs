//! What happens to payloads between your code and the server: compression, encryption, or something of yours.

mod awaiting;
mod chain;
#[cfg(feature = "compression")]
pub(crate) mod compression;
mod decode_incoming;
#[cfg(feature = "encryption")]
pub(crate) mod encryption;
#[cfg(any(feature = "compression", feature = "encryption", test))]
mod envelope;
mod failed_event;
mod text;

use std::future::Future;

pub(crate) use chain::Codecs;
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

/// A codec that has to ask somebody: a key service, a store of large objects. Set with `async_codec` where
/// [`PayloadCodec`] is set with `codec`; the two kinds form one chain. Everything that is said of
/// [`PayloadCodec`] holds for it too. A codec that needs no `.await` is better written as a [`PayloadCodec`]:
/// it costs nothing but its work.
///
/// It is asked for every payload by itself, so keep what you were told: a key that is fetched once opens a
/// history of ten thousand steps at once. A call that takes longer than half a minute counts as an error.
///
/// ```no_run
/// use kagzi::codec::{AsyncPayloadCodec, CodecError, Payload};
///
/// # struct Vault;
/// # impl Vault {
/// #     async fn seal(&self, data: &[u8]) -> Result<Vec<u8>, CodecError> { Ok(data.to_vec()) }
/// #     async fn open(&self, data: &[u8]) -> Result<Vec<u8>, CodecError> { Ok(data.to_vec()) }
/// # }
/// struct Sealed(Vault);
///
/// impl AsyncPayloadCodec for Sealed {
///     async fn encode(&self, payload: Payload) -> Result<Payload, CodecError> {
///         let data = self.0.seal(&payload.data).await?.into();
///         Ok(Payload { data, content_type: "application/x-sealed".into() })
///     }
///
///     async fn decode(&self, payload: Payload) -> Result<Payload, CodecError> {
///         if payload.content_type != "application/x-sealed" {
///             return Ok(payload);
///         }
///         let data = self.0.open(&payload.data).await?.into();
///         Ok(Payload { data, content_type: "application/json".into() })
///     }
/// }
///
/// # async fn connect(vault: Vault) -> Result<(), kagzi::Error> {
/// let client = kagzi::Client::connect("127.0.0.1:50051").await?.async_codec(Sealed(vault));
/// # drop(client); Ok(()) }
/// ```
pub trait AsyncPayloadCodec: Send + Sync + 'static {
    /// See [`PayloadCodec::encode`].
    fn encode(&self, payload: Payload) -> impl Future<Output = Result<Payload, CodecError>> + Send;

    /// See [`PayloadCodec::decode`].
    fn decode(&self, payload: Payload) -> impl Future<Output = Result<Payload, CodecError>> + Send;
}

/// Why a codec could not do its work.
///
/// ```
/// let error = kagzi::codec::CodecError::new("key 'k1' is not known here: give the worker the key");
/// assert!(error.to_string().contains("k1"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CodecError(String);

impl CodecError {
    /// The error with this message. It may be stored in the clear, so it must not quote payloads or keys.
    pub fn new(message: impl Into<String>) -> CodecError {
        CodecError(message.into())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use kagzi_proto::v1;

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

    #[tokio::test]
    async fn a_chain_decodes_in_the_opposite_order() {
        let codecs = Codecs::default().and(Sign(1)).and(Sign(2));
        let plain = v1::Payload { data: "7".into(), content_type: "application/json".into() };

        let encoded = codecs.encode(plain.clone()).await.unwrap();

        assert_eq!((encoded.content_type.as_str(), encoded.data[0]), ("application/x-sign-2", 2));
        assert_eq!(codecs.decode(encoded).await.unwrap(), plain);
    }

    #[tokio::test]
    async fn what_no_codec_knows_comes_back_unchanged() {
        let plain = v1::Payload { data: "7".into(), content_type: "application/json".into() };

        assert_eq!(Codecs::default().and(Sign(1)).decode(plain.clone()).await.unwrap(), plain);
        assert_eq!(Codecs::default().encode(plain.clone()).await.unwrap(), plain);
    }
}
