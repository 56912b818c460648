//! Server, store and worker in your own process, with a file name and no port.

use std::path::Path;
use std::time::Duration;

use kagzi_server::{Embedded as Server, Settings, StoreUrl};

use crate::client::Client;
use crate::codec::{AsyncPayloadCodec, Codecs, PayloadCodec};
use crate::error::Error;
use crate::worker::WorkerBuilder;

/// A durable engine inside this process.
///
/// ```no_run
/// # async fn example() -> anyhow::Result<()> {
/// let kagzi = kagzi::Embedded::open("orders.db").await?;
/// let mut worker = kagzi.worker("orders").build().await?;
/// worker.register("hello", |_: kagzi::WorkflowContext, name: String| async move {
///     Ok(format!("hello {name}"))
/// });
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

/// An engine that is being described. What is not set is as on a server: see `docs/configuration.md`.
///
/// ```no_run
/// # async fn example() -> Result<(), kagzi::Error> {
/// use std::time::Duration;
///
/// let month = Duration::from_secs(30 * 24 * 3600);
/// let builder = kagzi::Embedded::builder().retention(month).payload_max_bytes(64 * 1024);
/// let kagzi = builder.open("orders.db").await?;
/// # drop(kagzi); Ok(()) }
/// ```
///
/// ```no_run
/// # async fn embed(key: impl kagzi::codec::PayloadCodec) -> anyhow::Result<()> {
/// use std::time::Duration;
/// use kagzi::Embedded;
///
/// let builder = Embedded::builder().retention(Duration::from_secs(3600)).payload_max_bytes(1024 * 1024);
/// let builder = builder.create_namespaces(false).step_concurrency_max(4);
/// let builder = builder.step_timeout(Duration::from_secs(9));
/// let kagzi = builder.codec(key).open("orders.db").await?;
/// let (client, worker) = (kagzi.client(), kagzi.worker("orders"));
/// kagzi.close().await;
/// let other = Embedded::open_store("sqlite:other.db").await?;
/// # drop((client, worker, other));
/// # Ok(()) }
/// ```
#[must_use = "an engine is made by .open(..)"]
#[derive(Default)]
pub struct EmbeddedBuilder {
    settings: Settings,
    codecs: Codecs,
}

impl Embedded {
    /// Opens or creates the database file and starts the engine. The file belongs to this process until
    /// [`close`](Embedded::close).
    pub async fn open(file: impl AsRef<Path>) -> Result<Embedded, Error> {
        Embedded::builder().open(file).await
    }

    /// The same on any store: `sqlite:PATH`, or `turso:PATH` with the feature `turso` (beta).
    pub async fn open_store(url: &str) -> Result<Embedded, Error> {
        Embedded::builder().open_store(url).await
    }

    /// Describes an engine with settings of your own.
    pub fn builder() -> EmbeddedBuilder {
        EmbeddedBuilder::default()
    }

    /// Adds a codec to every client and worker that is made from now on: see [`PayloadCodec`].
    pub fn codec(mut self, codec: impl PayloadCodec) -> Embedded {
        self.codecs = self.codecs.and(codec);
        self
    }

    /// The same for a codec that has to ask somebody, such as a key service: see [`AsyncPayloadCodec`].
    ///
    /// ```no_run
    /// # use kagzi::codec::AsyncPayloadCodec;
    /// # fn with(kagzi: kagzi::Embedded, vault: impl AsyncPayloadCodec) -> kagzi::Embedded {
    /// kagzi.async_codec(vault)
    /// # }
    /// ```
    pub fn async_codec(mut self, codec: impl AsyncPayloadCodec) -> Embedded {
        self.codecs = self.codecs.and_async(codec);
        self
    }

    /// A client of this engine.
    pub fn client(&self) -> Client {
        Client::on_channel(self.server.channel()).with_codecs(self.codecs.clone())
    }

    /// Begins to build a worker for a queue of this engine. Signals are left to the program around it.
    pub fn worker(&self, task_queue: &str) -> WorkerBuilder {
        let worker = WorkerBuilder::on_channel(self.server.channel(), task_queue);
        worker.handle_signals(false).with_codecs(self.codecs.clone())
    }

    /// Waits for the commit in flight and closes the file. Workers that still run are cut off; what they
    /// held goes on when the file is opened again.
    pub async fn close(self) {
        self.server.close().await;
    }
}

impl EmbeddedBuilder {
    /// How long finished runs are kept. Default: 90 days; `Duration::MAX` = for ever.
    pub fn retention(mut self, time: Duration) -> Self {
        self.settings.retention = (time != Duration::MAX).then_some(time);
        self
    }

    /// Larger payloads are refused. Default: 2 MiB.
    pub fn payload_max_bytes(mut self, bytes: usize) -> Self {
        self.settings.payload_max_bytes = bytes;
        self.settings.payload_warn_bytes = self.settings.payload_warn_bytes.min(bytes);
        self
    }

    /// Whether a namespace that nobody created is made by the first start or worker that names it. Default:
    /// yes.
    pub fn create_namespaces(mut self, create: bool) -> Self {
        self.settings.create_namespaces = create;
        self
    }

    /// Steps of one run that a worker executes at once. Default: 10.
    pub fn step_concurrency_max(mut self, steps: u32) -> Self {
        self.settings.step_concurrency_max = steps;
        self
    }

    /// The longest execution of one attempt of a step that sets no limit itself. Default: 10 minutes.
    pub fn step_timeout(mut self, timeout: Duration) -> Self {
        self.settings.start_to_close = timeout;
        self
    }

    /// Adds a codec to every client and worker of the engine: see [`PayloadCodec`].
    pub fn codec(mut self, codec: impl PayloadCodec) -> Self {
        self.codecs = self.codecs.and(codec);
        self
    }

    /// The same for a codec that has to ask somebody, such as a key service: see [`AsyncPayloadCodec`].
    ///
    /// ```no_run
    /// # use kagzi::codec::AsyncPayloadCodec;
    /// # async fn open(vault: impl AsyncPayloadCodec) -> Result<kagzi::Embedded, kagzi::Error> {
    /// kagzi::Embedded::builder().async_codec(vault).open("orders.db").await
    /// # }
    /// ```
    pub fn async_codec(mut self, codec: impl AsyncPayloadCodec) -> Self {
        self.codecs = self.codecs.and_async(codec);
        self
    }

    /// Opens or creates the database file and starts the engine.
    pub async fn open(self, file: impl AsRef<Path>) -> Result<Embedded, Error> {
        let file = file.as_ref();
        self.start(&StoreUrl::Sqlite(file.to_owned()), &file.display().to_string()).await
    }

    /// The same on any store: see [`Embedded::open_store`].
    pub async fn open_store(self, url: &str) -> Result<Embedded, Error> {
        let parsed = url.parse::<StoreUrl>();
        let store =
            parsed.map_err(|error| Error::Store { store: url.to_owned(), message: error.to_string() })?;
        self.start(&store, url).await
    }

    async fn start(self, store: &StoreUrl, name: &str) -> Result<Embedded, Error> {
        let opened = Server::open(store, self.settings).await;
        let failed =
            |error: anyhow::Error| Error::Store { store: name.to_owned(), message: format!("{error:#}") };
        Ok(Embedded { server: opened.map_err(failed)?, codecs: self.codecs })
    }
}
