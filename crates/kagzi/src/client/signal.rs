//! Telling a run something.

use std::future::IntoFuture;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use kagzi_proto::v1;
use serde::Serialize;
use uuid::Uuid;

use crate::client::handle::RunHandle;
use crate::client::{Repeat, Server};
use crate::error::Error;
use crate::payload::encode;

/// A signal on its way, made by [`RunHandle::signal`]. Await it.
#[must_use = "a signal is sent when it is awaited"]
pub struct Signal {
    run: RunHandle,
    channel: String,
    id: Option<String>,
    payload: Result<v1::Payload, Error>,
    failure: Option<v1::Failure>,
}

/// What became of a signal: it is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Signalled {
    /// One with this id came before on this channel; the run was not told again.
    pub already: bool,
    /// Its id: yours, or one that was made for this call.
    pub id: String,
}

fn unencodable(error: &impl ToString) -> Error {
    Error::Encode { what: "the signal", message: error.to_string() }
}

impl RunHandle {
    /// Tells the run something on a channel; its code takes it with
    /// [`ctx.signal`](crate::WorkflowContext::signal), now or when it comes by. Awaited, it is durable.
    ///
    /// ```no_run
    /// # async fn example(client: kagzi::Client) -> Result<(), kagzi::Error> {
    /// let order = client.get_by_id("order-42").await?;
    /// # let order = client.handle(order.run_id);
    /// order.signal("approved", &"ada").id("approval-of-ada").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn signal<T: Serialize + ?Sized>(&self, channel: impl Into<String>, value: &T) -> Signal {
        let payload = encode(value).map_err(|error| unencodable(&error));
        Signal { run: self.clone(), channel: channel.into(), id: None, payload, failure: None }
    }

    /// The same for a value that is JSON already.
    pub(crate) fn signal_payload(&self, channel: String, payload: v1::Payload) -> Signal {
        Signal { run: self.clone(), channel, id: None, payload: Ok(payload), failure: None }
    }

    /// Tells the run that what it waits for on this channel has failed: the wait ends with this error.
    ///
    /// ```no_run
    /// # async fn example(order: kagzi::client::RunHandle) -> Result<(), kagzi::Error> {
    /// order.signal_failure("paid", "CARD_DECLINED", "the bank said no").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn signal_failure(
        &self,
        channel: impl Into<String>,
        code: impl Into<String>,
        message: impl Into<String>,
    ) -> Signal {
        let (code, message) = (code.into(), message.into());
        let failure = v1::Failure { code, message, non_retryable: true, ..Default::default() };
        let nothing = Ok(v1::Payload::default());
        Signal {
            run: self.clone(),
            channel: channel.into(),
            id: None,
            payload: nothing,
            failure: Some(failure),
        }
    }
}

impl Signal {
    /// Your own name for this signal: sent twice, by you or by somebody else, it counts once. Without one,
    /// each call is a signal of its own, and repeats within the call are recognised.
    pub fn id(mut self, id: impl Into<String>) -> Signal {
        self.id = Some(id.into());
        self
    }

    async fn send(self) -> Result<Signalled, Error> {
        let Signal { run, channel, id, payload, failure } = self;
        let client = run.client();
        let encoded = client.codecs.encode(payload?).await;
        let payload = encoded.map_err(|error| unencodable(&error))?;
        let failure = match failure {
            Some(failure) => Some(client.codecs.encode_failure(failure).await),
            None => None,
        };
        let request = Box::new(v1::SignalWorkflowRunRequest {
            namespace_id: client.namespace_id().to_owned(),
            run: Some(v1::RunRef { r#ref: Some(v1::run_ref::Ref::RunId(run.run_id().to_owned())) }),
            channel,
            // Made here, so that a repeat of this very call is recognised.
            signal_id: id.unwrap_or_else(|| Uuid::now_v7().to_string()),
            payload: Some(payload),
            failure,
        });
        let tell = |server: Arc<Server>| server.signal(request.clone());
        let answer = client.ask("signal a run", Repeat::Safe, tell).await?;
        Ok(Signalled { already: answer.already_delivered, id: answer.signal_id })
    }
}

impl IntoFuture for Signal {
    type Output = Result<Signalled, Error>;
    type IntoFuture = BoxFuture<'static, Result<Signalled, Error>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}
