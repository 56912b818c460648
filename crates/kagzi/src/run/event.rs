//! Waiting for an event that somebody publishes: `ctx.event`.

use std::future::IntoFuture;
use std::marker::PhantomData;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;

use crate::run::call::Called;
use crate::run::context::WorkflowContext;
use crate::run::signal::listen;

/// How the channels of topics begin; the topic follows, and behind the separator the key.
const CHANNEL: &str = "~event/";
const SEPARATOR: char = '#';

/// A wait for one event, made by [`WorkflowContext::event`]. Await it.
///
/// ```
/// # use kagzi::WorkflowContext;
/// # use std::time::Duration;
/// async fn order(ctx: WorkflowContext, id: String) -> anyhow::Result<bool> {
///     let day = Duration::from_secs(86_400);
///     let paid: Option<u64> = ctx.event("order.paid").key(&id).timeout(day).await?;
///     Ok(paid.is_some())
/// }
/// ```
#[must_use = "a wait does nothing unless it is awaited"]
pub struct EventWait<T> {
    called: anyhow::Result<Called>,
    topic: String,
    key: String,
    reads: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned + Send + 'static> EventWait<T> {
    pub(crate) fn new(context: &WorkflowContext, topic: &str) -> EventWait<T> {
        let called = context.call(topic);
        EventWait { called, topic: topic.to_owned(), key: String::new(), reads: PhantomData }
    }

    /// Which one of these events: only those that are published with this key. Without one, only those that
    /// are published without.
    pub fn key(mut self, key: impl Into<String>) -> EventWait<T> {
        self.key = key.into();
        self
    }

    /// Waits for at most so long, from the first time that the code comes by: `None` = there was none.
    pub fn timeout(self, timeout: Duration) -> TimedEventWait<T> {
        TimedEventWait { wait: self, timeout }
    }

    fn begin(self, timeout: Option<Duration>) -> BoxFuture<'static, anyhow::Result<Option<T>>> {
        let EventWait { called, topic, key, .. } = self;
        let channel = match key.is_empty() {
            true => format!("{CHANNEL}{topic}"),
            false => format!("{CHANNEL}{topic}{SEPARATOR}{key}"),
        };
        Box::pin(async move {
            let called = called?;
            let path = called.slot.step.path.clone();
            listen(called, channel, timeout, false).await?.read(&path)
        })
    }
}

impl<T: DeserializeOwned + Send + 'static> IntoFuture for EventWait<T> {
    type Output = anyhow::Result<T>;
    type IntoFuture = BoxFuture<'static, anyhow::Result<T>>;

    fn into_future(self) -> Self::IntoFuture {
        let topic = self.topic.clone();
        let waiting = self.begin(None);
        Box::pin(async move {
            waiting
                .await?
                .ok_or_else(|| anyhow::anyhow!("the wait for an event on '{topic}' ended without one"))
        })
    }
}

/// A wait that ends by itself, made by [`EventWait::timeout`]. Await it.
#[must_use = "a wait does nothing unless it is awaited"]
pub struct TimedEventWait<T> {
    wait: EventWait<T>,
    timeout: Duration,
}

impl<T: DeserializeOwned + Send + 'static> IntoFuture for TimedEventWait<T> {
    type Output = anyhow::Result<Option<T>>;
    type IntoFuture = BoxFuture<'static, anyhow::Result<Option<T>>>;

    fn into_future(self) -> Self::IntoFuture {
        self.wait.begin(Some(self.timeout))
    }
}
