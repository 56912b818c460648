//! A server in the user's own process, without a port: the same services over an in-memory pipe.

use hyper_util::rt::TokioIo;
use std::sync::Arc;

use kagzi_engine::Settings;
use kagzi_store::Clock;
use tokio::{
    io::DuplexStream,
    sync::{Mutex, mpsc},
    task::JoinHandle,
};
use tokio_stream::{StreamExt, wrappers::UnboundedReceiverStream};
use tonic::transport::{Channel, Endpoint, Uri};

use crate::{Server, StoreUrl, edge};

/// Bytes in flight in each direction of a pipe.
const PIPE_BYTES: usize = 1024 * 1024;

/// An embedded server. Stop it with [`Embedded::close`], so that the last commit is awaited.
pub struct Embedded {
    server: Server,
    connections: mpsc::UnboundedSender<DuplexStream>,
    serving: Mutex<Option<JoinHandle<Result<(), tonic::transport::Error>>>>,
}

impl Embedded {
    /// Opens the store and serves it to this process.
    pub async fn open(store: &StoreUrl, settings: Settings) -> anyhow::Result<Embedded> {
        Embedded::serve(Server::open(store, settings).await?)
    }

    /// The same, on a clock of the caller's choice.
    pub async fn open_with(
        store: &StoreUrl,
        settings: Settings,
        clock: Arc<dyn Clock>,
    ) -> anyhow::Result<Embedded> {
        Embedded::serve(Server::open_with(store, settings, clock).await?)
    }

    fn serve(server: Server) -> anyhow::Result<Embedded> {
        let (connections, incoming) = mpsc::unbounded_channel::<DuplexStream>();
        let incoming = UnboundedReceiverStream::new(incoming).map(Ok::<_, std::io::Error>);
        let router = server.transport(edge::any_host())?;
        let stop = server.stop_token();
        let serving = tokio::spawn(async move {
            router.serve_with_incoming_shutdown(incoming, stop.cancelled_owned()).await
        });
        Ok(Embedded { server, connections, serving: Mutex::new(Some(serving)) })
    }

    /// A channel into the server. It opens its pipe when it is first used.
    pub fn channel(&self) -> Channel {
        let connections = self.connections.clone();
        let connector = tower::service_fn(move |_: Uri| {
            let connections = connections.clone();
            async move {
                let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
                let closed = |_| std::io::Error::other("the embedded server has stopped");
                connections.send(theirs).map_err(closed)?;
                Ok::<_, std::io::Error>(TokioIo::new(ours))
            }
        });
        Endpoint::from_static("http://embedded.kagzi").connect_with_connector_lazy(connector)
    }

    /// Ends streams, waits for the commit in flight and closes the store.
    pub async fn close(&self) {
        self.server.close().await;
        if let Some(serving) = self.serving.lock().await.take() {
            // Open calls end with their streams; one that hangs must not keep the process alive.
            serving.abort();
        }
    }
}
