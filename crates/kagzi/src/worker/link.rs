//! One stream after the other: waiting, dialling, open, broken, waiting again.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kagzi_proto::v1::{ServerMessage, WorkerMessage};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::client::wire::{Interceptors, Rpc, Workers};
use crate::connection::Connection;
use crate::error::Error;
use crate::reconnect_delay::ReconnectDelay;

/// The way to the server, as far as it goes right now.
pub(crate) struct Link {
    connection: Connection,
    interceptors: Interceptors,
    backoff: ReconnectDelay,
    /// The server has taken us in on the current stream.
    welcomed: bool,
    state: State,
}

enum State {
    Waiting { until: Instant },
    Dialling(BoxFuture<'static, Result<Streaming<ServerMessage>, Error>>),
    Open(Box<Streaming<ServerMessage>>),
}

#[allow(clippy::large_enum_variant, reason = "one at a time, and taken apart at once")]
pub(crate) enum LinkEvent {
    /// Time to dial.
    Due,
    Message(ServerMessage),
    /// The stream ended, or never began.
    Broken(Error),
}

impl Link {
    pub(crate) fn new(connection: Connection, interceptors: Interceptors) -> Link {
        let state = State::Waiting { until: Instant::now() };
        Link { connection, interceptors, backoff: ReconnectDelay::new(), welcomed: false, state }
    }

    /// Opens a stream that carries these messages. The first must already be in the channel: the server
    /// answers the call only once it has read it.
    pub(crate) fn dial(&mut self, messages: mpsc::Receiver<WorkerMessage>) {
        let (connection, interceptors) = (self.connection.clone(), self.interceptors.clone());
        self.state = State::Dialling(open(connection, interceptors, messages).boxed());
    }

    /// The server has taken us in; the next break begins with a short wait again.
    pub(crate) fn welcomed(&mut self) {
        self.backoff.reset();
        self.welcomed = true;
    }

    /// What happens next. May be dropped at any time and called again.
    pub(crate) async fn next(&mut self) -> LinkEvent {
        let broken = match &mut self.state {
            State::Waiting { until } => {
                tokio::time::sleep_until(*until).await;
                return LinkEvent::Due;
            }
            State::Dialling(opening) => match opening.await {
                Ok(stream) => {
                    self.state = State::Open(Box::new(stream));
                    return self.next_message().await;
                }
                Err(error) => error,
            },
            State::Open(_) => return self.next_message().await,
        };
        self.broken(broken)
    }

    async fn next_message(&mut self) -> LinkEvent {
        let State::Open(stream) = &mut self.state else { unreachable!("called on an open stream only") };
        let error = match stream.message().await {
            Ok(Some(message)) => return LinkEvent::Message(message),
            Ok(None) => {
                Error::refused("keep the worker's stream", &tonic::Status::unavailable("it was closed"))
            }
            Err(status) => Error::refused("keep the worker's stream", &status),
        };
        self.broken(error)
    }

    fn broken(&mut self, error: Error) -> LinkEvent {
        // One that answers but takes nobody in, e.g. while it shuts down.
        if !std::mem::take(&mut self.welcomed) {
            self.connection.prefer_next();
        }
        self.state = State::Waiting { until: Instant::now() + self.backoff.next_delay() };
        LinkEvent::Broken(error)
    }
}

async fn open(
    connection: Connection,
    interceptors: Interceptors,
    messages: mpsc::Receiver<WorkerMessage>,
) -> Result<Streaming<ServerMessage>, Error> {
    let channel = connection.connect().await?;
    let mut client = Workers::from(Rpc(interceptors.before(channel)));
    let answer = client.work(ReceiverStream::new(messages)).await;
    Ok(answer.map_err(|status| Error::refused("open the worker's stream", &status))?.into_inner())
}
