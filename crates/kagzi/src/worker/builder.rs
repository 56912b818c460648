//! `Worker::builder(..)`: who the worker is and how much it takes.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use kagzi_proto::v1;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tonic::transport::Channel;

use crate::addresses::Addresses;
use crate::cancellation::CancellationToken;
use crate::client::wire::{Interceptors, OutgoingCall};
use crate::codec::{AsyncPayloadCodec, Codecs, PayloadCodec};
use crate::connection::Connection;
use crate::error::Error;
use crate::limits;
use crate::run::before_retry::{BeforeRetry, Hook};
use crate::run::context::WorkflowContext;
use crate::worker::Worker;
use crate::worker::equipment::{Equipment, Failure, Middleware};
use crate::worker::handlers::Handlers;
use crate::worker::observer::Observer;
use crate::workflow::typed::Registers;

/// A worker that is being described.
///
/// ```no_run
/// # use kagzi::{codec::PayloadCodec, workflow::Failure, workflow::Middleware};
/// # async fn work<E: Failure>(key: impl PayloadCodec, log: impl Middleware) -> anyhow::Result<()> {
/// use std::time::Duration;
/// use kagzi::{Worker, WorkflowContext};
///
/// let builder = Worker::builder("127.0.0.1:50051", "orders").namespace("shop").max_concurrent(20);
/// let builder = builder.hostname("rack-7").version("2026.11").label("zone", "a").codec(key).middleware(log);
/// let builder = builder.failure::<E>();
/// let builder = builder.drain_timeout(Duration::from_secs(30)).handle_signals(false);
/// let builder = builder.header("x-team", "orders").interceptor(|call| call.header("x-call", "work"));
/// let order = |_: WorkflowContext, cents: u64| async move { Ok(cents) };
/// builder.register("order", order).run().await?;
/// let worker = Worker::builder("127.0.0.1:50051", "refunds").build().await?;
/// # drop(worker);
/// # Ok(()) }
/// ```
#[must_use = "a worker does nothing until it is built and run"]
pub struct WorkerBuilder {
    server: Server,
    task_queue: String,
    namespace: String,
    max_concurrent: u32,
    hostname: Option<String>,
    version: String,
    labels: HashMap<String, String>,
    drain_timeout: Duration,
    handle_signals: bool,
    codecs: Codecs,
    interceptors: Interceptors,
    equipment: Equipment,
    handlers: Handlers,
}

enum Server {
    Addresses(Addresses),
    Channel(Channel),
}

impl WorkerBuilder {
    pub(crate) fn new(addresses: Addresses, task_queue: String) -> WorkerBuilder {
        WorkerBuilder::with(Server::Addresses(addresses), task_queue)
    }

    /// A worker on a channel that is already made. For embedded mode and tests.
    pub(crate) fn on_channel(channel: Channel, task_queue: impl Into<String>) -> WorkerBuilder {
        WorkerBuilder::with(Server::Channel(channel), task_queue.into())
    }

    fn with(server: Server, task_queue: String) -> WorkerBuilder {
        WorkerBuilder {
            server,
            task_queue,
            namespace: "default".to_owned(),
            max_concurrent: limits::MAX_CONCURRENT_DEFAULT,
            hostname: None,
            version: String::new(),
            labels: HashMap::new(),
            drain_timeout: limits::DRAIN_TIMEOUT_DEFAULT,
            handle_signals: true,
            codecs: Codecs::default(),
            interceptors: Interceptors::default(),
            equipment: Equipment::default(),
            handlers: Handlers::default(),
        }
    }

    /// Default: `default`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// Runs at once; the server keeps to it. Default: 100.
    pub fn max_concurrent(mut self, runs: u32) -> Self {
        self.max_concurrent = runs;
        self
    }

    /// Shown in lists of workers. Default: this machine's name.
    pub fn hostname(mut self, hostname: impl Into<String>) -> Self {
        self.hostname = Some(hostname.into());
        self
    }

    /// The version of your code, shown in lists of workers.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = version.into();
        self
    }

    /// Anything worth knowing about this worker, e.g. its zone or container.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }

    /// How long draining waits for runs in flight before it gives them back. Default: 60 s.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.drain_timeout = timeout;
        self
    }

    /// Adds a codec: see [`PayloadCodec`]. Clients need the same ones.
    pub fn codec(mut self, codec: impl PayloadCodec) -> Self {
        self.codecs = self.codecs.and(codec);
        self
    }

    /// The same for a codec that has to ask somebody, such as a key service: see [`AsyncPayloadCodec`].
    ///
    /// ```no_run
    /// # use kagzi::codec::AsyncPayloadCodec;
    /// # async fn build(vault: impl AsyncPayloadCodec) -> Result<kagzi::Worker, kagzi::Error> {
    /// kagzi::Worker::builder("127.0.0.1:50051", "orders").async_codec(vault).build().await
    /// # }
    /// ```
    pub fn async_codec(mut self, codec: impl AsyncPayloadCodec) -> Self {
        self.codecs = self.codecs.and_async(codec);
        self
    }

    #[cfg(feature = "embedded")]
    pub(crate) fn with_codecs(mut self, codecs: Codecs) -> Self {
        self.codecs = codecs;
        self
    }

    /// What every workflow and step can reach with [`WorkflowContext::state`] and [`StepContext::state`]: one
    /// value of each type, shared and not cloned. Given again, the last counts.
    ///
    /// [`StepContext::state`]: crate::StepContext::state
    ///
    /// ```no_run
    /// # use kagzi::{Worker, WorkflowContext};
    /// struct Shop { currency: &'static str }
    ///
    /// async fn price(ctx: WorkflowContext, cents: u64) -> anyhow::Result<String> {
    ///     Ok(format!("{cents} {}", ctx.state::<Shop>().currency))
    /// }
    ///
    /// # async fn work() -> Result<(), kagzi::Error> {
    /// let worker = Worker::builder("127.0.0.1:50051", "prices").state(Shop { currency: "cents" });
    /// worker.register("price", price).run().await
    /// # }
    /// ```
    pub fn state<T: Send + Sync + 'static>(mut self, state: T) -> Self {
        self.equipment.add_state(state);
        self
    }

    /// Makes an error type known, so that steps and workflows that fail with it report its code: see
    /// [`Failure`].
    pub fn failure<E: Failure>(mut self) -> Self {
        self.equipment.add_failure::<E>();
        self
    }

    /// Stands around every execution of a function and every attempt of a step: see [`Middleware`]. The first
    /// that is given is the outermost.
    pub fn middleware(mut self, middleware: impl Middleware) -> Self {
        self.equipment.add_middleware(middleware);
        self
    }

    /// Is told what really happens, and never of a replay: see [`Observer`].
    ///
    /// ```no_run
    /// # fn told(metrics: impl kagzi::workflow::Observer) {
    /// let worker = kagzi::Worker::builder("127.0.0.1:50051", "orders").observer(metrics);
    /// # drop(worker);
    /// # }
    /// ```
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.equipment.observers.add(observer);
        self
    }

    /// Calls the hook before a step is tried again whose kind and failure ask for it by this name
    /// (docs/failures.md), or that asks for it itself
    /// ([`StepBuilder::before_retry`](crate::workflow::StepBuilder::before_retry)). At least once per retry,
    /// inside the attempt and its timeout; its error fails the attempt. Given again, the last counts.
    ///
    /// ```
    /// # use kagzi::workflow::BeforeRetry;
    /// let worker = kagzi::Worker::builder("127.0.0.1:50051", "scraping").before_retry(
    ///     "refresh_page",
    ///     |told: BeforeRetry| async move {
    ///         println!("{} failed with {}: reload", told.step.path(), told.failure.code);
    ///         Ok(())
    ///     },
    /// );
    /// # drop(worker);
    /// ```
    pub fn before_retry<F, Fut>(mut self, name: &str, hook: F) -> Self
    where
        F: Fn(BeforeRetry) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        self.equipment.add_before_retry(Hook::new(name, hook));
        self
    }

    /// Names the function that executes runs of a type: see [`Worker::register`].
    pub fn register<W, F, Fut, I, O>(mut self, workflow: W, function: F) -> Self
    where
        W: Registers<I, O>,
        F: Fn(WorkflowContext, I) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = anyhow::Result<O>> + Send + 'static,
        I: DeserializeOwned + Send + 'static,
        O: Serialize + 'static,
    {
        self.handlers.insert(workflow.workflow_type(), function);
        self
    }

    /// Builds the worker and serves until drained: see [`Worker::run`].
    pub async fn run(self) -> Result<(), Error> {
        self.build().await?.run().await
    }

    /// Sends a header when the worker connects, e.g. a token.
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let (name, value) = (name.into(), value.into());
        self.interceptor(move |call| call.header(name.clone(), value.clone()))
    }

    /// Is shown every call before it is sent, and may add headers to it. A worker makes one call per
    /// connection, so a token that changes is asked for when the worker connects again.
    pub fn interceptor(mut self, intercept: impl Fn(&mut OutgoingCall) + Send + Sync + 'static) -> Self {
        self.interceptors = self.interceptors.and(intercept);
        self
    }

    /// Whether SIGTERM and SIGINT drain the worker. Default: yes. Switch it off in a process with its own
    /// signal handling, and use the shutdown token.
    pub fn handle_signals(mut self, handle: bool) -> Self {
        self.handle_signals = handle;
        self
    }

    /// Checks the description. No server is asked yet; `run` connects, so a worker may start before its
    /// server does.
    pub async fn build(self) -> Result<Worker, Error> {
        if self.task_queue.is_empty() {
            return Err(Error::InvalidWorker("the task queue must not be empty".to_owned()));
        }
        let max_concurrent = i32::try_from(self.max_concurrent).ok().filter(|runs| *runs > 0);
        let Some(max_concurrent) = max_concurrent else {
            return Err(Error::InvalidWorker(format!(
                "max_concurrent is {}, it must be between 1 and {}",
                self.max_concurrent,
                i32::MAX
            )));
        };
        let connection = match self.server {
            Server::Addresses(addresses) => Connection::to(&addresses)?,
            Server::Channel(channel) => Connection::Channel(channel),
        };
        let registration = v1::RegisterWorkerRequest {
            namespace_id: self.namespace,
            task_queue: self.task_queue,
            workflow_types: Vec::new(),
            hostname: self.hostname.unwrap_or_else(machine_name),
            pid: i32::try_from(std::process::id()).unwrap_or(0),
            version: self.version,
            max_concurrent: Some(max_concurrent),
            labels: self.labels,
        };
        Ok(Worker {
            connection,
            registration,
            handlers: self.handlers,
            shutdown: CancellationToken::new(),
            drain_timeout: self.drain_timeout,
            handle_signals: self.handle_signals,
            codecs: self.codecs,
            interceptors: self.interceptors,
            equipment: self.equipment,
            #[cfg(feature = "testing")]
            probe: None,
        })
    }
}

fn machine_name() -> String {
    hostname::get().map_or_else(|_| String::new(), |name| name.to_string_lossy().into_owned())
}
