//! Accepting connections: so many at once, none that says nothing, and with patience when the system has none
//! left.

use std::{
    io::{self, ErrorKind},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use futures_util::stream::{self, Stream};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Sleep,
};
use tonic::transport::server::{Connected, TcpConnectInfo};
use tracing::{debug, info, warn};

use super::EdgeSettings;

/// How long to wait after the first failed accept, and at most.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// What is counted about connections.
#[derive(Debug, Default)]
pub struct ConnectionStats {
    pub open: AtomicU64,
    /// Closed at once because there were too many.
    pub refused: AtomicU64,
    /// Closed because they did not say anything in time.
    pub silent: AtomicU64,
    /// Times that the system could give no connection.
    pub accept_errors: AtomicU64,
}

/// The connections of a listener.
pub struct Connections {
    listener: TcpListener,
    slots: Arc<Semaphore>,
    greeting_timeout: Duration,
    stats: Arc<ConnectionStats>,
    /// What the log was told about last, so that it is told once.
    trouble: Option<Trouble>,
    pause: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    /// The system has no descriptors or no memory left.
    Exhausted,
    /// Our own limit.
    Full,
}

impl Connections {
    pub fn new(listener: TcpListener, settings: &EdgeSettings, stats: Arc<ConnectionStats>) -> Connections {
        Connections {
            listener,
            slots: Arc::new(Semaphore::new(settings.connections_max.min(Semaphore::MAX_PERMITS))),
            greeting_timeout: settings.greeting_timeout,
            stats,
            trouble: None,
            pause: PAUSE_MIN,
        }
    }

    /// One connection after the other, without end and without errors.
    pub fn stream(self) -> impl Stream<Item = io::Result<Connection>> {
        stream::unfold(self, |mut this| async move {
            let connection = this.next().await;
            Some((Ok(connection), this))
        })
    }

    async fn next(&mut self) -> Connection {
        loop {
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) if of_one_connection(&error) => {
                    debug!(%error, "a connection broke before it was accepted");
                    continue;
                }
                Err(error) => {
                    self.exhausted(&error).await;
                    continue;
                }
            };
            self.pause = PAUSE_MIN;
            let Ok(slot) = self.slots.clone().try_acquire_owned() else {
                self.stats.refused.fetch_add(1, Relaxed);
                if self.trouble.replace(Trouble::Full) != Some(Trouble::Full) {
                    let open = self.stats.open.load(Relaxed);
                    warn!(open, "new connections are closed: server.connections_max is reached");
                }
                continue;
            };
            if self.trouble.take().is_some() {
                info!("connections are accepted again");
            }
            // Without TCP_NODELAY every answer waits up to 40 ms for the peer's delayed acknowledgement.
            if let Err(error) = stream.set_nodelay(true) {
                debug!(%error, "a connection broke when it was accepted");
                continue;
            }
            return Connection::new(stream, slot, self.greeting_timeout, self.stats.clone());
        }
    }

    /// Connections that wait in the system's queue make the listener ready at once, so without a pause this
    /// loop would spin for as long as the system has no descriptors left.
    async fn exhausted(&mut self, error: &io::Error) {
        self.stats.accept_errors.fetch_add(1, Relaxed);
        if self.trouble.replace(Trouble::Exhausted) != Some(Trouble::Exhausted) {
            let open = self.stats.open.load(Relaxed);
            warn!(%error, open, "no connection can be accepted; raise the limit of open files (ulimit -n)");
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }
}

/// Errors that say something about the peer and nothing about us.
fn of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted
            | ErrorKind::ConnectionReset
            | ErrorKind::Interrupted
            | ErrorKind::TimedOut
    )
}

/// A connection that has to begin to speak. Once we have answered anything, HTTP itself watches it: with
/// pings, or with its timeout for headers.
pub struct Connection {
    stream: TcpStream,
    greeting: Option<Pin<Box<Sleep>>>,
    stats: Arc<ConnectionStats>,
    _slot: OwnedSemaphorePermit,
}

impl Connection {
    fn new(
        stream: TcpStream,
        slot: OwnedSemaphorePermit,
        greeting_timeout: Duration,
        stats: Arc<ConnectionStats>,
    ) -> Connection {
        stats.open.fetch_add(1, Relaxed);
        let greeting = Some(Box::pin(tokio::time::sleep(greeting_timeout)));
        Connection { stream, greeting, stats, _slot: slot }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.stats.open.fetch_sub(1, Relaxed);
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Poll::Ready(read) = Pin::new(&mut this.stream).poll_read(cx, buf) {
            return Poll::Ready(read);
        }
        if let Some(greeting) = &mut this.greeting {
            ready!(greeting.as_mut().poll(cx));
            this.stats.silent.fetch_add(1, Relaxed);
            return Poll::Ready(Err(ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.greeting = None;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.greeting = None;
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
