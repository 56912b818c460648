//! Executes runs: [`Worker::builder`], [`Worker::register`], [`Worker::run`].

pub(crate) mod builder;
mod drain;
pub(crate) mod equipment;
pub(crate) mod handlers;
mod in_flight;
mod incoming;
mod link;
pub(crate) mod observer;
mod outbox;
mod session;
mod session_thread;
mod signals;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use kagzi_proto::v1;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use crate::addresses::Addresses;
pub use crate::cancellation::CancellationToken;
use crate::client::wire::Interceptors;
use crate::client::{Calls, Client};
use crate::codec::Codecs;
use crate::connection::Connection;
use crate::error::Error;
use crate::run::context::WorkflowContext;
use crate::workflow::typed::Registers;
use crate::workflow_failed::WorkflowFailedEvent;
pub use builder::WorkerBuilder;
use equipment::Equipment;
use handlers::Handlers;
use session::{Session, Setup};
use signals::Signals;

/// The reserved workflow type of a namespace's failure handler.
const FAILURE_HANDLER: &str = "__kagzi_failure_handler";

/// Executes runs of one task queue.
///
/// ```no_run
/// # async fn work() -> anyhow::Result<()> {
/// use kagzi::{Worker, WorkflowContext, workflow::WorkflowFailedEvent};
///
/// async fn tell(ctx: WorkflowContext, failed: WorkflowFailedEvent) -> anyhow::Result<()> {
///     ctx.run("mail", async move { Ok(println!("{} failed", failed.failed_run_id)) }).await
/// }
///
/// let mut worker = Worker::builder("127.0.0.1:50051", "failures").build().await?;
/// worker.register_failure_handler(tell);
/// let stop = worker.shutdown_token();
/// let working = tokio::spawn(worker.run());
/// stop.cancel();
/// working.await??;
/// # Ok(()) }
/// ```
pub struct Worker {
    connection: Connection,
    registration: v1::RegisterWorkerRequest,
    handlers: Handlers,
    shutdown: CancellationToken,
    drain_timeout: Duration,
    handle_signals: bool,
    codecs: Codecs,
    interceptors: Interceptors,
    equipment: Equipment,
    #[cfg(feature = "testing")]
    pub(crate) probe: Option<Arc<crate::testing::Probe>>,
}

impl Worker {
    /// A worker for one queue of the server at `addresses`: `"127.0.0.1:50051"`, a comma-separated list,
    /// or a vector; when one server cannot be reached, the next is tried.
    pub fn builder(addresses: impl Into<Addresses>, task_queue: impl Into<String>) -> WorkerBuilder {
        WorkerBuilder::new(addresses.into(), task_queue.into())
    }

    /// Names the function that executes runs of a type. Runs of other types are left to other workers.
    ///
    /// ```no_run
    /// # async fn work() -> anyhow::Result<()> {
    /// use kagzi::{Worker, WorkflowContext};
    ///
    /// async fn greet(_: WorkflowContext, name: String) -> anyhow::Result<String> {
    ///     Ok(format!("hello {name}"))
    /// }
    ///
    /// let mut worker = Worker::builder("127.0.0.1:50051", "greetings").build().await?;
    /// worker.register("greet", greet);
    /// worker.run().await?;
    /// # Ok(()) }
    /// ```
    pub fn register<W, F, Fut, I, O>(&mut self, workflow: W, function: F) -> &mut Worker
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

    /// Names the function that handles every failure in this worker's namespace: it is started for each run
    /// that fails or times out, whatever its type and queue, but not for failed handlers.
    pub fn register_failure_handler<F, Fut, O>(&mut self, function: F) -> &mut Worker
    where
        F: Fn(WorkflowContext, WorkflowFailedEvent) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = anyhow::Result<O>> + Send + 'static,
        O: Serialize + 'static,
    {
        self.register(FAILURE_HANDLER, function)
    }

    /// Cancel it to drain the worker: it takes nothing new, finishes what it has, and `run` returns.
    pub fn shutdown_token(&self) -> CancellationToken {
        self.shutdown.clone()
    }

    /// Serves until drained, on a thread of its own; runs are executed by the runtime that calls this. Steps
    /// that block that runtime do not silence the worker. It is drained by the shutdown token, SIGTERM,
    /// SIGINT or the server's order. A second SIGINT does not wait for runs in flight but gives them back. A
    /// server that cannot be reached is tried again for ever; one that refuses the registration is an error.
    pub async fn run(self) -> Result<(), Error> {
        let workflow_types = self.handlers.workflow_types();
        if workflow_types.is_empty() {
            return Err(Error::InvalidWorker("no workflow function is registered".to_owned()));
        }
        if let Some(twice) = self.handlers.duplicates().first() {
            return Err(Error::InvalidWorker(format!("workflow type '{twice}' is registered twice")));
        }
        let signals = if self.handle_signals { Signals::listen()? } else { Signals::none() };
        let mut equipment = self.equipment;
        let client = Client::new(self.connection.clone(), self.interceptors.clone(), Calls::default());
        let namespace = self.registration.namespace_id.clone();
        equipment.set_client(client.namespace(namespace).with_codecs(self.codecs.clone()));
        // A channel that was made elsewhere is served where it was made, and so must be whoever uses it.
        let network = matches!(self.connection, Connection::Network(_));
        let setup = Setup {
            connection: self.connection,
            registration: v1::RegisterWorkerRequest { workflow_types, ..self.registration },
            handlers: Arc::new(self.handlers),
            shutdown: self.shutdown.token().clone(),
            signals,
            drain_timeout: self.drain_timeout,
            codecs: self.codecs,
            interceptors: self.interceptors,
            equipment: Arc::new(equipment),
            #[cfg(feature = "testing")]
            probe: self.probe,
        };
        if network { session_thread::serve(setup).await } else { Session::new(setup, None).run().await }
    }
}
