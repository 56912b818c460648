//! How a call reaches a server: which one is talked to, for how long, and whether it is asked again.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use kagzi_proto::v1;
use prost::Message;
use tonic::{Response, Status};

use super::Client;
use super::conversation::Conversation;
use super::patience::Patience;
use super::wire::{Rpc, Wire, Workflows};
use crate::error::Error;
use crate::limits;

/// How patient calls are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Calls {
    pub(crate) timeout: Duration,
    pub(crate) retry_for: Duration,
}

impl Default for Calls {
    fn default() -> Calls {
        Calls { timeout: limits::CALL_TIMEOUT, retry_for: limits::CALL_RETRY_FOR }
    }
}

/// The server that is talked to at the moment.
pub(crate) struct Server {
    pub(super) wire: Wire,
    pub(crate) conversation: Conversation,
}

impl Server {
    fn on(wire: Wire) -> Arc<Server> {
        Arc::new(Server { conversation: Conversation::on(wire.clone()), wire })
    }

    pub(crate) async fn start(
        self: Arc<Self>,
        request: tonic::Request<Box<v1::StartWorkflowRequest>>,
    ) -> Result<v1::StartWorkflowResponse, Status> {
        // What travels beside the message, a trace, has no place on a shared stream; and a start that is too
        // large for the server should fail alone, not with everybody's stream.
        let alone = !request.metadata().is_empty() || request.get_ref().encoded_len() > limits::ASK_BYTES_MAX;
        if alone {
            let mut rpc = Workflows::from(Rpc(self.wire.clone()));
            return Box::pin(rpc.start_workflow(request.map(|request| *request)))
                .await
                .map(Response::into_inner);
        }
        self.conversation.start(request.into_inner()).await
    }

    pub(crate) async fn signal(
        self: Arc<Self>,
        request: Box<v1::SignalWorkflowRunRequest>,
    ) -> Result<v1::SignalWorkflowRunResponse, Status> {
        // Too large for the server, it should fail alone.
        if request.encoded_len() > limits::ASK_BYTES_MAX {
            let mut rpc = Workflows::from(Rpc(self.wire.clone()));
            return Box::pin(rpc.signal_workflow_run(*request)).await.map(Response::into_inner);
        }
        self.conversation.signal(request).await
    }
}

/// Whether a call may be sent a second time when the answer to the first was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    Safe,
    Unsafe,
}

impl Client {
    /// One unary call on any service.
    pub(crate) async fn call<R, T, F, Fut>(
        &self,
        attempted: &'static str,
        repeat: Repeat,
        rpc: F,
    ) -> Result<T, Error>
    where
        R: From<Rpc>,
        F: Fn(R) -> Fut,
        Fut: Future<Output = Result<Response<T>, Status>>,
    {
        let call = |server: Arc<Server>| {
            let answer = rpc(R::from(Rpc(server.wire.clone())));
            async move { Ok(answer.await?.into_inner()) }
        };
        self.ask(attempted, repeat, call).await
    }

    /// One question to a server.
    pub(crate) async fn ask<T, F, Fut>(
        &self,
        attempted: &'static str,
        repeat: Repeat,
        question: F,
    ) -> Result<T, Error>
    where
        F: Fn(Arc<Server>) -> Fut,
        Fut: Future<Output = Result<T, Status>>,
    {
        let mut patience = Patience::new(self.way.calls, self.way.connection.server_count());
        loop {
            let (error, sent) = match self.server().await {
                Ok(server) => {
                    match self.ask_once(attempted, self.way.calls.timeout, question(server)).await {
                        Ok(answer) => return Ok(answer),
                        Err(error) => (error, true),
                    }
                }
                Err(error) => (error, false),
            };
            // Boxed: it is large and rare, and this future is part of every call.
            Box::pin(patience.bear(error, repeat == Repeat::Safe || !sent)).await?;
        }
    }

    /// One question, once, and not for longer than this.
    pub(crate) async fn ask_once<T>(
        &self,
        attempted: &'static str,
        timeout: Duration,
        question: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, Error> {
        let error = match tokio::time::timeout(timeout, question).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(status)) => Error::refused(attempted, &status),
            Err(_) => Error::TimedOut { attempted, waited: timeout },
        };
        self.lost(&error);
        Err(error)
    }

    /// A server did not do what was asked. Its channel reconnects by itself; where there is another server,
    /// that one is next.
    pub(crate) fn lost(&self, error: &Error) {
        if error.is_outage() && self.way.connection.server_count() > 1 {
            self.way.connection.prefer_next();
            *self.way.server.lock() = None;
        }
    }

    /// The server that is talked to; connects where there is none.
    pub(crate) async fn server(&self) -> Result<Arc<Server>, Error> {
        if let Some(server) = &*self.way.server.lock() {
            return Ok(Arc::clone(server));
        }
        // Boxed: connecting is large and rare, and this future is part of every call.
        let channel = Box::pin(self.way.connection.connect()).await?;
        let server = Server::on(self.way.interceptors.before(channel));
        Ok(self.way.server.lock().get_or_insert(server).clone())
    }
}
