//! Completing a promise from outside: `client.promise(token)`.

use kagzi_proto::v1;
use serde::Serialize;

use crate::client::Client;
use crate::client::handle::RunHandle;
use crate::client::wire::rpc;
use crate::error::Error;
use crate::payload::encode;

/// A promise of a run, seen from outside. Made by [`Client::promise`] or [`RunHandle::promise`].
///
/// ```no_run
/// # async fn example(client: kagzi::Client, token: String) -> Result<(), kagzi::Error> {
/// let payment = client.promise(token);
/// payment.beat().await?;
/// let completed = payment.complete(&"receipt-7").await?;
/// assert!(!completed.already, "the first word counts");
///
/// let run = client.handle("0198c5f2-5b7e-7a10-8f59-3d2a6f3f1c55");
/// run.promise("payment").fail("CARD_DECLINED", "no money").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PromiseHandle {
    client: Client,
    token: String,
    run_id: String,
    name: String,
}

/// What became of an attempt to complete a promise.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completed {
    /// It was completed or failed before; that word counts, and nothing was written.
    pub already: bool,
    /// The run whose promise it is.
    pub run_id: String,
    /// Its name in that run.
    pub name: String,
}

impl Client {
    /// The promise with this token: the token is the right to complete it, and to nothing else.
    pub fn promise(&self, token: impl Into<String>) -> PromiseHandle {
        let (run_id, name) = (String::new(), String::new());
        PromiseHandle { client: self.clone(), token: token.into(), run_id, name }
    }
}

impl RunHandle {
    /// The promise of this name, for those who may tell the run anything.
    pub fn promise(&self, name: impl Into<String>) -> PromiseHandle {
        let (client, run_id) = (self.client().clone(), self.run_id().to_owned());
        PromiseHandle { client, token: String::new(), run_id, name: name.into() }
    }
}

impl PromiseHandle {
    /// Completes it: the code that waits for it goes on with this value, now or when it comes by.
    pub async fn complete<T: Serialize + ?Sized>(&self, value: &T) -> Result<Completed, Error> {
        let unencodable = |message| Error::Encode { what: "the promise's value", message };
        let payload = encode(value).map_err(|error| unencodable(error.to_string()))?;
        let encoded = self.client.codecs.encode(payload).await;
        let payload = encoded.map_err(|error| unencodable(error.to_string()))?;
        self.send(Some(payload), None).await
    }

    /// Says that it has failed: the wait for it ends with this error.
    pub async fn fail(
        &self,
        code: impl Into<String>,
        message: impl Into<String>,
    ) -> Result<Completed, Error> {
        let (code, message) = (code.into(), message.into());
        let failure = v1::Failure { code, message, non_retryable: true, ..Default::default() };
        let failure = self.client.codecs.encode_failure(failure).await;
        self.send(None, Some(failure)).await
    }

    /// Says that whoever works on it lives, where the promise demands it.
    pub async fn beat(&self) -> Result<(), Error> {
        let request = v1::BeatPromiseRequest {
            namespace_id: self.client.namespace_id().to_owned(),
            token: self.token.clone(),
            run: self.run(),
            name: self.name.clone(),
        };
        rpc!(self.client, Workflows.beat_promise, Safe, "give a sign of life", request)?;
        Ok(())
    }

    async fn send(
        &self,
        payload: Option<v1::Payload>,
        failure: Option<v1::Failure>,
    ) -> Result<Completed, Error> {
        let request = v1::CompletePromiseRequest {
            namespace_id: self.client.namespace_id().to_owned(),
            token: self.token.clone(),
            run: self.run(),
            name: self.name.clone(),
            payload,
            failure,
        };
        let answer = rpc!(self.client, Workflows.complete_promise, Safe, "complete a promise", request)?;
        Ok(Completed { already: answer.already_completed, run_id: answer.run_id, name: answer.name })
    }

    fn run(&self) -> Option<v1::RunRef> {
        let named = |id: &String| v1::RunRef { r#ref: Some(v1::run_ref::Ref::RunId(id.clone())) };
        Some(&self.run_id).filter(|id| !id.is_empty()).map(named)
    }
}
