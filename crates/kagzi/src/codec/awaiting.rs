//! Codecs that have to ask somebody.

use futures_util::future::BoxFuture;

use super::{AsyncPayloadCodec, CodecError, Payload};
use crate::limits::CODEC_TIMEOUT;

/// An [`AsyncPayloadCodec`] of any type.
pub(crate) trait AsyncCodec: Send + Sync {
    fn encode(&self, payload: Payload) -> BoxFuture<'_, Result<Payload, CodecError>>;
    fn decode(&self, payload: Payload) -> BoxFuture<'_, Result<Payload, CodecError>>;
}

impl<C: AsyncPayloadCodec> AsyncCodec for C {
    fn encode(&self, payload: Payload) -> BoxFuture<'_, Result<Payload, CodecError>> {
        Box::pin(AsyncPayloadCodec::encode(self, payload))
    }

    fn decode(&self, payload: Payload) -> BoxFuture<'_, Result<Payload, CodecError>> {
        Box::pin(AsyncPayloadCodec::decode(self, payload))
    }
}

/// Whoever is asked and never answers must not hold a run for ever.
pub(super) async fn in_time(
    coding: BoxFuture<'_, Result<Payload, CodecError>>,
) -> Result<Payload, CodecError> {
    let late = || CodecError::new(format!("a codec has not answered within {} s", CODEC_TIMEOUT.as_secs()));
    tokio::time::timeout(CODEC_TIMEOUT, coding).await.unwrap_or_else(|_| Err(late()))
}

#[cfg(test)]
mod tests {
    use kagzi_proto::v1;

    use super::*;
    use crate::codec::{Codecs, tests::Sign};

    /// Never answers.
    struct Silent;

    impl AsyncPayloadCodec for Silent {
        async fn encode(&self, payload: Payload) -> Result<Payload, CodecError> {
            std::future::pending::<()>().await;
            Ok(payload)
        }

        async fn decode(&self, payload: Payload) -> Result<Payload, CodecError> {
            AsyncPayloadCodec::encode(self, payload).await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_codec_that_never_answers_is_an_error_after_half_a_minute() {
        let codecs = Codecs::default().and_async(Silent);
        let began = tokio::time::Instant::now();

        let encoded = codecs.encode(v1::Payload::default()).await;
        let decoded = codecs.decode(v1::Payload::default()).await;

        assert!(encoded.unwrap_err().to_string().contains("not answered within 30 s"));
        assert!(decoded.is_err());
        assert_eq!(began.elapsed(), CODEC_TIMEOUT * 2);
    }

    /// Nobody pays for codecs that they do not have: such a chain is done at once, without a box.
    #[test]
    fn a_chain_in_which_nothing_awaits_is_done_before_it_is_awaited() {
        use futures_util::FutureExt;

        let codecs = Codecs::default().and(Sign(1)).and(Sign(2));
        let plain = v1::Payload { data: "7".into(), content_type: "application/json".into() };

        let encoded = codecs.encode(plain.clone());

        assert!(matches!(encoded, futures_util::future::Either::Left(_)));
        let encoded = encoded.now_or_never().unwrap().unwrap();
        assert_eq!(codecs.decode(encoded).now_or_never().unwrap().unwrap(), plain);
    }

    #[tokio::test]
    async fn both_kinds_form_one_chain_in_the_order_in_which_they_were_set() {
        struct Slow(Sign);
        impl AsyncPayloadCodec for Slow {
            async fn encode(&self, payload: Payload) -> Result<Payload, CodecError> {
                tokio::task::yield_now().await;
                crate::codec::PayloadCodec::encode(&self.0, payload)
            }
            async fn decode(&self, payload: Payload) -> Result<Payload, CodecError> {
                tokio::task::yield_now().await;
                crate::codec::PayloadCodec::decode(&self.0, payload)
            }
        }
        let codecs = Codecs::default().and(Sign(1)).and_async(Slow(Sign(2))).and(Sign(3));
        let plain = v1::Payload { data: "7".into(), content_type: "application/json".into() };

        let encoded = codecs.encode(plain.clone()).await.unwrap();

        assert_eq!((encoded.content_type.as_str(), encoded.data[0]), ("application/x-sign-3", 3));
        assert_eq!(codecs.decode(encoded).await.unwrap(), plain);
    }
}
