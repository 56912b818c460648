//! Asking a running workflow: `run.ask`.

use std::future::IntoFuture;
use std::marker::PhantomData;
use std::time::Duration;

use futures_util::future::BoxFuture;
use kagzi_proto::{REJECTED, v1};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use uuid::Uuid;

use crate::client::handle::RunHandle;
use crate::client::outage::Outage;
use crate::client::wire::rpc;
use crate::error::{AskRejected, Error};
use crate::limits;
use crate::payload::{self, encode};
use crate::retry_policy::millis;

/// A request that is being described, by [`RunHandle::ask`]. Awaited, it is sent, and its answer comes.
#[must_use = "a request is sent by .await"]
pub struct Ask<R> {
    run: RunHandle,
    channel: String,
    id: Option<String>,
    payload: Result<v1::Payload, Error>,
    timeout: Option<Duration>,
    reads: PhantomData<fn() -> R>,
}

impl RunHandle {
    /// Asks the run's code something and waits for its answer: see
    /// [`ctx.requests`](crate::WorkflowContext::requests). The request is durable, and so is the answer:
    /// asked again with the same id, the same answer comes. A run that ends without an answer is an error,
    /// `RUN_ENDED_UNANSWERED`; code that says no is [`Error::Rejected`].
    ///
    /// ```no_run
    /// # async fn example(client: kagzi::Client) -> Result<(), kagzi::Error> {
    /// use std::time::Duration;
    ///
    /// let cart = client.handle("0198c5f2-5b7e-7a10-8f59-3d2a6f3f1c55");
    /// let minute = Duration::from_secs(60);
    /// let count: u32 = cart.ask("add-item", &"tea").id("click-17").timeout(minute).await?;
    /// # let _ = count;
    /// # Ok(())
    /// # }
    /// ```
    pub fn ask<T: Serialize + ?Sized, R>(&self, channel: impl Into<String>, value: &T) -> Ask<R> {
        let unencodable =
            |error: serde_json::Error| Error::Encode { what: "the request", message: error.to_string() };
        Ask {
            run: self.clone(),
            channel: channel.into(),
            id: None,
            payload: encode(value).map_err(unencodable),
            timeout: None,
            reads: PhantomData,
        }
    }
}

impl<R> Ask<R> {
    /// Your own name for this request: asked twice, by you or by somebody else, it is one request with one
    /// answer. Without one each call is a request of its own.
    pub fn id(mut self, id: impl Into<String>) -> Ask<R> {
        self.id = Some(id.into());
        self
    }

    /// How long to wait for the answer; the request stays. Without it, as long as it takes.
    pub fn timeout(mut self, timeout: Duration) -> Ask<R> {
        self.timeout = Some(timeout);
        self
    }
}

impl<R: DeserializeOwned + Send + 'static> IntoFuture for Ask<R> {
    type Output = Result<R, Error>;
    type IntoFuture = BoxFuture<'static, Result<R, Error>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let Ask { run, channel, id, payload, timeout, .. } = self;
            let client = run.client();
            let encoded = client.codecs.encode(payload?).await;
            let unencodable = |error: crate::codec::CodecError| Error::Encode {
                what: "the request",
                message: error.to_string(),
            };
            let request = v1::AskWorkflowRunRequest {
                namespace_id: client.namespace_id().to_owned(),
                run: Some(v1::RunRef { r#ref: Some(v1::run_ref::Ref::RunId(run.run_id().to_owned())) }),
                channel,
                // Made here, so that every repeat of this call is the same request.
                ask_id: id.unwrap_or_else(|| Uuid::now_v7().to_string()),
                payload: Some(encoded.map_err(unencodable)?),
                timeout_ms: 0,
            };
            let asked = answered(&run, request);
            let answer = match timeout {
                None => asked.await?,
                Some(waited) => tokio::time::timeout_at(Instant::now() + waited, asked)
                    .await
                    .map_err(|_| Error::TimedOut { attempted: "ask a run", waited })??,
            };
            read(&run, answer).await
        })
    }
}

/// Asks until there is an answer: a poll ends before the call's own time does.
async fn answered(
    run: &RunHandle,
    mut request: v1::AskWorkflowRunRequest,
) -> Result<v1::AskWorkflowRunResponse, Error> {
    let mut outage = Outage::default();
    request.timeout_ms = millis(limits::ASK_POLL);
    loop {
        let client = run.client();
        match rpc!(client, Workflows.ask_workflow_run, Safe, "ask a run", request.clone()) {
            Ok(answer) if answer.answered => return Ok(answer),
            Ok(_) => outage = Outage::default(),
            Err(error) => outage.bear(error).await?,
        }
    }
}

async fn read<R: DeserializeOwned>(run: &RunHandle, answer: v1::AskWorkflowRunResponse) -> Result<R, Error> {
    let codecs = &run.client().codecs;
    if let Some(mut failure) = answer.rejected {
        if let Err(error) = codecs.decode_failure(&mut failure).await {
            tracing::debug!(%error, "an answer is shown as it came");
        }
        return Err(AskRejected::new(run.run_id(), failure.code, failure.message).into());
    }
    let reply = codecs.decode(answer.reply.unwrap_or_default()).await;
    let reply = reply.map_err(|error| Error::undecodable("the answer", &error))?;
    if reply.content_type == REJECTED {
        let said: serde_json::Value = serde_json::from_slice(&reply.data).unwrap_or_default();
        let word =
            |name: &str| said.get(name).and_then(|word| word.as_str()).unwrap_or("REJECTED").to_owned();
        return Err(AskRejected::new(run.run_id(), word("code"), word("message")).into());
    }
    payload::decode(Some(&reply)).map_err(|error| Error::undecodable("the answer", &error))
}
