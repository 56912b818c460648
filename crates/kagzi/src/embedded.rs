//! Embedded mode: server, store and worker in the user's own process, with a file name and no port.

use std::path::Path;

use kagzi_server::{Embedded as Server, Settings, StoreUrl};

use crate::codec::{Codecs, PayloadCodec};
use crate::{Client, WorkerBuilder};

/// A durable engine inside this process.
///
/// ```no_run
/// # async fn example() -> anyhow::Result<()> {
/// let kagzi = kagzi::Embedded::open("orders.db").await?;
/// let mut worker = kagzi.worker("orders").build().await?;
/// worker.register("hello", |_: kagzi::WorkflowContext, name: String| async move { Ok(format!("hello {name}")) });
/// let working = tokio::spawn(worker.run());
/// let run = kagzi.client().workflow("hello", "orders", "Ada").await?;
/// println!("{}", run.result::<String>().await?);
/// kagzi.close().await;
/// # drop(working);
/// # Ok(())
/// # }
/// ```
pub struct Embedded {
    server: Server,
    codecs: Codecs,
}

impl Embedded {
    /// Opens or creates the database file and starts the engine. The file belongs to this process until
    /// [`close`](Embedded::close).
    pub async fn open(file: impl AsRef<Path>) -> anyhow::Result<Embedded> {
        Embedded::on(&StoreUrl::Sqlite(file.as_ref().to_owned())).await
    }

    /// The same on any store: `sqlite:PATH`, or `turso:PATH` with the feature `turso` (beta).
    pub async fn open_store(url: &str) -> anyhow::Result<Embedded> {
        Embedded::on(&url.parse().map_err(anyhow::Error::msg)?).await
    }

    async fn on(store: &StoreUrl) -> anyhow::Result<Embedded> {
        let server = Server::open(store, Settings::default()).await?;
        Ok(Embedded { server, codecs: Codecs::default() })
    }

    /// Adds a codec to every client and worker that is made from now on: see [`PayloadCodec`].
    pub fn codec(mut self, codec: impl PayloadCodec) -> Embedded {
        self.codecs = self.codecs.and(codec);
        self
    }

    /// A client of this engine.
    pub fn client(&self) -> Client {
        Client::from_channel(self.server.channel()).with_codecs(self.codecs.clone())
    }

    /// Begins to build a worker for a queue of this engine. Signals are left to the program around it.
    pub fn worker(&self, task_queue: &str) -> WorkerBuilder {
        let worker = WorkerBuilder::from_channel(self.server.channel(), task_queue);
        worker.handle_signals(false).with_codecs(self.codecs.clone())
    }

    /// Waits for the commit in flight and closes the file. Workers that still run are cut off; what they
    /// held goes on when the file is opened again.
    pub async fn close(self) {
        self.server.close().await;
    }
}
