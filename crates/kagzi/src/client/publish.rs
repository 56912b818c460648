//! Publishing an event to everybody who waits for it.

use std::future::IntoFuture;
use std::time::Duration;

use futures_util::future::BoxFuture;
use kagzi_proto::v1;
use serde::Serialize;
use uuid::Uuid;

use crate::client::Client;
use crate::client::wire::rpc;
use crate::error::Error;
use crate::payload::encode;
use crate::retry_policy;

/// An event on its way, made by [`Client::publish`]. Await it.
#[must_use = "an event is published when it is awaited"]
pub struct Publish {
    client: Client,
    topic: String,
    key: String,
    id: Option<String>,
    keep: Option<Duration>,
    payload: Result<v1::Payload, Error>,
}

/// What became of an event: it is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublishedEvent {
    /// One with this id was published on this topic and key before; nothing was done.
    pub already: bool,
    /// Its id: yours, or one that was made for this call.
    pub id: String,
}

fn unencodable(error: &impl ToString) -> Error {
    Error::Encode { what: "the event", message: error.to_string() }
}

impl Client {
    /// Publishes an event on a topic. It reaches every run whose code waits for it with
    /// [`ctx.event`](crate::WorkflowContext::event), and every run that exists already and waits for it
    /// later, for as long as it is kept. Triggers start a run for it. Awaited, it is durable.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(client: kagzi::Client) -> Result<(), kagzi::Error> {
    /// let day = Duration::from_secs(86_400);
    /// let published = client.publish("order.paid", &700).key("42").id("payment-9").keep(day).await?;
    /// assert_eq!(published.id, "payment-9");
    /// # Ok(())
    /// # }
    /// ```
    pub fn publish<T: Serialize + ?Sized>(&self, topic: impl Into<String>, value: &T) -> Publish {
        let payload = encode(value).map_err(|error| unencodable(&error));
        Publish {
            client: self.clone(),
            topic: topic.into(),
            key: String::new(),
            id: None,
            keep: None,
            payload,
        }
    }
}

impl Publish {
    /// Which one it is about: it reaches waits with the same key.
    pub fn key(mut self, key: impl Into<String>) -> Publish {
        self.key = key.into();
        self
    }

    /// Your own name for this event: published twice, by you or by somebody else, it counts once for as long
    /// as it is kept. Without one, each call is an event of its own, and repeats within the call are
    /// recognised.
    pub fn id(mut self, id: impl Into<String>) -> Publish {
        self.id = Some(id.into());
        self
    }

    /// How long it is kept for runs that wait for it later. Default: a day; at most ninety.
    pub fn keep(mut self, keep: Duration) -> Publish {
        self.keep = Some(keep);
        self
    }

    async fn send(self) -> Result<PublishedEvent, Error> {
        let Publish { client, topic, key, id, keep, payload } = self;
        let encoded = client.codecs.encode(payload?).await;
        let payload = encoded.map_err(|error| unencodable(&error))?;
        let request = v1::PublishEventRequest {
            namespace_id: client.namespace_id().to_owned(),
            topic,
            key,
            // Made here, so that a repeat of this very call is recognised.
            event_id: id.unwrap_or_else(|| Uuid::now_v7().to_string()),
            payload: Some(payload),
            keep_ms: keep.map(retry_policy::millis),
        };
        let answer = rpc!(client, Workflows.publish_event, Safe, "publish an event", request)?;
        Ok(PublishedEvent { already: answer.already_published, id: answer.event_id })
    }
}

impl IntoFuture for Publish {
    type Output = Result<PublishedEvent, Error>;
    type IntoFuture = BoxFuture<'static, Result<PublishedEvent, Error>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
