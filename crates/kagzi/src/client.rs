//! Starts runs, waits for them and stops them.
//!
//! | to | see |
//! |---|---|
//! | start a run | [`Client::workflow`], [`Client::start`] |
//! | wait for its result | [`RunHandle::result`] |
//! | stop, retry or look at one | [`RunHandle`] |
//! | find runs | [`Client::runs`] |
//! | tell or ask a run something | [`RunHandle::signal`], [`RunHandle::ask`] |
//! | complete a promise | [`Client::promise`] |
//! | publish an event to all runs that wait for it | [`Client::publish`] |
//! | do something once for everybody | [`Client::once`] |
//! | read what a run publishes | [`RunHandle::value`] |

mod ask;
pub(crate) mod builder;
mod calls;
mod conversation;
pub(crate) mod handle;
mod once;
mod outage;
mod patience;
mod promise;
mod publish;
pub(crate) mod run;
pub(crate) mod runs;
mod signal;
pub(crate) mod start;
mod start_many;
mod value;
pub(crate) mod watch;
pub(crate) mod wire;

use std::sync::Arc;

use kagzi_proto::v1;
use parking_lot::Mutex;
use serde::Serialize;
use tonic::transport::Channel;

pub use crate::addresses::Addresses;
use crate::admin::Admin;
use crate::codec::{AsyncPayloadCodec, Codecs, PayloadCodec};
use crate::connection::Connection;
use crate::error::Error;
pub use crate::page::{Page, Total};
pub use crate::payload::Payload;
use crate::schedule::{ScheduleBuilder, ScheduleHandle, Schedules};
use crate::workflow::typed::{AnyInput, Starts};
pub use ask::Ask;
pub use builder::ClientBuilder;
pub(crate) use calls::{Calls, Repeat, Server};
pub use handle::{Explanation, RunHandle, Stopped};
pub use once::{KeyView, Once, OnceClaim, OnceError, SharedKeys};
pub use promise::{Completed, PromiseHandle};
pub use publish::{Publish, PublishedEvent};
pub use run::{Reason, Run, RunStatus};
pub use runs::Runs;
pub use signal::{Signal, Signalled};
pub use start::{IdReuse, StartBuilder, Timeouts};
pub use value::Published;
pub use watch::Changes;
pub use wire::OutgoingCall;
use wire::{Interceptors, rpc};

/// Talks to a server. Cheap to clone; clones share one connection.
///
/// ```no_run
/// # async fn talk(key: impl kagzi::codec::PayloadCodec) -> anyhow::Result<()> {
/// use kagzi::Client;
///
/// let client = Client::builder("127.0.0.1:50051").connect().await?.namespace("shop").codec(key);
/// let run = client.workflow("order", "orders", 42).id("order-42").await?;
/// assert_eq!(client.get_by_id("order-42").await?.run_id, client.get(run.run_id()).await?.run_id);
/// client.handle(run.run_id()).cancel("no longer wanted").await?;
/// let many = (1..=3).map(|n| client.start("order").queue("orders").input(n)).collect();
/// for started in client.start_many(many).await {
///     println!("{}", started?.run_id());
/// }
/// client.schedule("nightly", "report", "reports", ()).cron("0 3 * * *").await?;
/// client.schedule_handle("nightly").pause("holidays").await?;
/// println!("{} runs", client.runs().count().await?.count);
/// println!("{} schedules", client.schedules().all().await?.len());
/// println!("{}", client.admin().server_info().await?.version);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client {
    way: Arc<Way>,
    namespace: Arc<str>,
    pub(crate) codecs: Codecs,
}

/// How servers are reached: what all clones of a client share.
struct Way {
    connection: Connection,
    interceptors: Interceptors,
    calls: Calls,
    /// None before the first connection, and after an outage where there is another server to go to.
    server: Mutex<Option<Arc<Server>>>,
}

impl Client {
    /// Connects to the first of these servers that answers: `"127.0.0.1:50051"`, a comma-separated list,
    /// or a vector.
    ///
    /// ```no_run
    /// # async fn connect() -> Result<(), kagzi::Error> {
    /// let client = kagzi::Client::connect("127.0.0.1:50051").await?;
    /// # drop(client); Ok(()) }
    /// ```
    pub async fn connect(addresses: impl Into<Addresses>) -> Result<Client, Error> {
        Client::builder(addresses).connect().await
    }

    /// Describes a client with headers, timeouts or codecs, or one that connects later.
    pub fn builder(addresses: impl Into<Addresses>) -> ClientBuilder {
        ClientBuilder::new(addresses.into())
    }

    /// A client on a channel that is already made. For embedded mode and tests.
    pub(crate) fn on_channel(channel: Channel) -> Client {
        Client::new(Connection::Channel(channel), Interceptors::default(), Calls::default())
    }

    pub(crate) fn new(connection: Connection, interceptors: Interceptors, calls: Calls) -> Client {
        let way = Way { connection, interceptors, calls, server: Mutex::default() };
        Client { way: Arc::new(way), namespace: "default".into(), codecs: Codecs::default() }
    }

    /// The same client for another namespace. Default: `default`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Client {
        self.namespace = namespace.into().into();
        self
    }

    /// The same client with one more codec: see [`PayloadCodec`]. Workers need the same ones.
    pub fn codec(mut self, codec: impl PayloadCodec) -> Client {
        self.codecs = self.codecs.and(codec);
        self
    }

    /// The same for a codec that has to ask somebody, such as a key service: see [`AsyncPayloadCodec`].
    ///
    /// ```no_run
    /// # use kagzi::codec::AsyncPayloadCodec;
    /// # fn with(client: kagzi::Client, vault: impl AsyncPayloadCodec) -> kagzi::Client {
    /// client.async_codec(vault)
    /// # }
    /// ```
    pub fn async_codec(mut self, codec: impl AsyncPayloadCodec) -> Client {
        self.codecs = self.codecs.and_async(codec);
        self
    }

    pub(crate) fn with_codecs(mut self, codecs: Codecs) -> Client {
        self.codecs = codecs;
        self
    }

    /// Describes a run to start; awaiting it starts the run.
    pub fn workflow(
        &self,
        workflow_type: impl Into<String>,
        task_queue: impl Into<String>,
        input: impl Serialize,
    ) -> StartBuilder {
        StartBuilder::<AnyInput>::new(self.clone(), workflow_type.into(), task_queue.into()).input(input)
    }

    /// The same with a name for everything: of a [`Workflow`](crate::Workflow), or of a name.
    ///
    /// ```no_run
    /// # use kagzi::{Client, Workflow};
    /// # async fn start(client: Client) -> Result<(), kagzi::Error> {
    /// const GREET: Workflow<String, String> = Workflow::new("greet").queue("greetings");
    ///
    /// let said = client.start(GREET).input("Ada".to_owned()).await?.result().await?;
    /// let same = client.start("greet").queue("greetings").input("Ada").await?.result::<String>().await?;
    /// # assert_eq!(said, same); Ok(()) }
    /// ```
    pub fn start<S: Starts>(&self, workflow: S) -> StartBuilder<S::Types> {
        let (workflow_type, task_queue) = workflow.into_parts();
        StartBuilder::new(self.clone(), workflow_type, task_queue)
    }

    /// Describes a schedule that starts runs of this type, with this input; awaiting it makes the schedule.
    pub fn schedule(
        &self,
        id: impl Into<String>,
        workflow_type: impl Into<String>,
        task_queue: impl Into<String>,
        input: impl Serialize,
    ) -> ScheduleBuilder {
        let workflow = (workflow_type.into(), task_queue.into());
        ScheduleBuilder::new(self.clone(), id.into(), workflow, &input)
    }

    /// The handle of a schedule that exists. Nothing is asked yet.
    pub fn schedule_handle(&self, id: impl Into<String>) -> ScheduleHandle {
        ScheduleHandle::new(self.clone(), id.into())
    }

    /// Starts many runs in few calls. Each is answered on its own, in the order given.
    pub async fn start_many(&self, starts: Vec<StartBuilder>) -> Vec<Result<RunHandle, Error>> {
        start_many::start_many(self, starts).await
    }

    /// The handle of a run that exists. Nothing is asked yet.
    pub fn handle(&self, run_id: impl Into<String>) -> RunHandle {
        RunHandle::new(self.clone(), run_id.into(), true)
    }

    /// Reads one run, with input and output. A unique prefix of its id is enough.
    pub async fn get(&self, run_id: impl Into<String>) -> Result<Run, Error> {
        Ok(Run::from_proto(*self.find(run_id.into()).await?))
    }

    /// The same as it came.
    async fn find(&self, run_id: String) -> Result<Box<v1::WorkflowRun>, Error> {
        let request = v1::GetWorkflowRunRequest {
            run_id,
            namespace_id: self.namespace.to_string(),
            business_id: String::new(),
            ..Default::default()
        };
        self.read_run(request).await
    }

    /// Reads the run with this business id.
    pub async fn get_by_id(&self, business_id: impl Into<String>) -> Result<Run, Error> {
        let request = v1::GetWorkflowRunRequest {
            run_id: String::new(),
            namespace_id: self.namespace.to_string(),
            business_id: business_id.into(),
            ..Default::default()
        };
        Ok(Run::from_proto(*self.read_run(request).await?))
    }

    async fn read_run(&self, request: v1::GetWorkflowRunRequest) -> Result<Box<v1::WorkflowRun>, Error> {
        let answer = rpc!(self, Workflows.get_workflow_run, Safe, "read a run", request)?;
        let mut run = Box::new(answer.workflow_run.unwrap_or_default());
        self.codecs.decode_run(&mut run).await.map_err(|error| Error::undecodable("the run", &error))?;
        Ok(run)
    }

    /// Lists runs, the newest first: one page at a time, or all of them as a stream.
    pub fn runs(&self) -> Runs {
        Runs::new(self.clone())
    }

    /// Lists schedules, filtered. Nothing is asked before [`Schedules::page`] or [`Schedules::all`].
    pub fn schedules(&self) -> Schedules {
        Schedules::new(self.clone())
    }

    /// Sets and looks at what operators do: namespaces, queues, workers.
    pub fn admin(&self) -> Admin {
        Admin::new(self.clone())
    }

    pub(crate) fn namespace_id(&self) -> &str {
        &self.namespace
    }

    /// A run of many. One whose key is not here must not hide the others.
    pub(crate) async fn readable(&self, run: v1::WorkflowRun) -> Run {
        let mut decoded = run.clone();
        match self.codecs.decode_run(&mut decoded).await {
            Ok(()) => Run::from_proto(decoded),
            Err(error) => {
                tracing::warn!(run = %run.run_id, %error, "a listed run stays encoded");
                Run::from_proto(run)
            }
        }
    }
}
