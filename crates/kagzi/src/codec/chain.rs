//! The codecs of a client or a worker, one after the other.

use std::sync::Arc;

use futures_util::future::{BoxFuture, Either, Ready, ready};
use kagzi_proto::v1;

use super::awaiting::{AsyncCodec, in_time};
use super::{AsyncPayloadCodec, CodecError, Payload, PayloadCodec};

/// A payload on its way through a chain: done already where no codec of the chain awaits anything.
pub(crate) type Coding =
    Either<Ready<Result<v1::Payload, CodecError>>, BoxFuture<'static, Result<v1::Payload, CodecError>>>;

/// The chain, in the order of encoding. Cheap to clone.
#[derive(Clone)]
pub(crate) enum Codecs {
    /// Nothing in it awaits anything.
    Plain(Arc<[Arc<dyn PayloadCodec>]>),
    Mixed(Arc<[Codec]>),
}

#[derive(Clone)]
pub(crate) enum Codec {
    Plain(Arc<dyn PayloadCodec>),
    Async(Arc<dyn AsyncCodec>),
}

impl Default for Codecs {
    fn default() -> Codecs {
        Codecs::Plain(Arc::default())
    }
}

impl Codecs {
    pub(crate) fn and(&self, codec: impl PayloadCodec) -> Codecs {
        let last: Arc<dyn PayloadCodec> = Arc::new(codec);
        match self {
            Codecs::Plain(chain) => Codecs::Plain(chain.iter().cloned().chain([last]).collect()),
            Codecs::Mixed(chain) => {
                Codecs::Mixed(chain.iter().cloned().chain([Codec::Plain(last)]).collect())
            }
        }
    }

    pub(crate) fn and_async(&self, codec: impl AsyncPayloadCodec) -> Codecs {
        let last = [Codec::Async(Arc::new(codec))];
        Codecs::Mixed(match self {
            Codecs::Plain(chain) => chain.iter().cloned().map(Codec::Plain).chain(last).collect(),
            Codecs::Mixed(chain) => chain.iter().cloned().chain(last).collect(),
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Codecs::Plain(chain) => chain.is_empty(),
            Codecs::Mixed(chain) => chain.is_empty(),
        }
    }

    pub(crate) fn encode(&self, payload: v1::Payload) -> Coding {
        match self {
            Codecs::Plain(chain) if chain.is_empty() => Either::Left(ready(Ok(payload))),
            Codecs::Plain(chain) => {
                let plain = Payload::from_proto(payload);
                let encoded = chain.iter().try_fold(plain, |payload, codec| codec.encode(payload));
                Either::Left(ready(encoded.map(Payload::into_proto)))
            }
            Codecs::Mixed(chain) => {
                let chain = chain.clone();
                Either::Right(Box::pin(async move {
                    let mut payload = Payload::from_proto(payload);
                    for codec in &*chain {
                        payload = match codec {
                            Codec::Plain(codec) => codec.encode(payload)?,
                            Codec::Async(codec) => in_time(codec.encode(payload)).await?,
                        };
                    }
                    Ok(payload.into_proto())
                }))
            }
        }
    }

    pub(crate) fn decode(&self, payload: v1::Payload) -> Coding {
        match self {
            Codecs::Plain(chain) if chain.is_empty() => Either::Left(ready(Ok(payload))),
            Codecs::Plain(chain) => {
                let encoded = Payload::from_proto(payload);
                let plain = chain.iter().rev().try_fold(encoded, |payload, codec| codec.decode(payload));
                Either::Left(ready(plain.map(Payload::into_proto)))
            }
            Codecs::Mixed(chain) => {
                let chain = chain.clone();
                Either::Right(Box::pin(async move {
                    let mut payload = Payload::from_proto(payload);
                    for codec in chain.iter().rev() {
                        payload = match codec {
                            Codec::Plain(codec) => codec.decode(payload)?,
                            Codec::Async(codec) => in_time(codec.decode(payload)).await?,
                        };
                    }
                    Ok(payload.into_proto())
                }))
            }
        }
    }

    pub(super) async fn decode_in_place(&self, payload: &mut Option<v1::Payload>) -> Result<(), CodecError> {
        if let Some(encoded) = payload.take() {
            *payload = Some(self.decode(encoded).await?);
        }
        Ok(())
    }
}
