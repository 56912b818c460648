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
//! | read what a run publishes | [`RunHandle::value`] |

mod ask;
pub(crate) mod builder;
mod conversation;
pub(crate) mod handle;
mod outage;
mod promise;
pub(crate) mod run;
pub(crate) mod runs;
mod signal;
pub(crate) mod start;
mod start_many;
mod value;
pub(crate) mod watch;
pub(crate) mod wire;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use kagzi_proto::v1;
use parking_lot::Mutex;
use prost::Message;
use serde::Serialize;
use tokio::time::Instant;
use tonic::transport::Channel;
use tonic::{Response, Status};

pub use crate::addresses::Addresses;
use crate::admin::Admin;
use crate::codec::{Codecs, PayloadCodec};
use crate::connection::Connection;
use crate::error::Error;
use crate::limits;
pub use crate::page::{Page, Total};
pub use crate::payload::Payload;
use crate::reconnect_delay::ReconnectDelay;
use crate::schedule::{ScheduleBuilder, ScheduleHandle, Schedules};
use crate::workflow::typed::{AnyInput, Starts};
pub use ask::Ask;
pub use builder::ClientBuilder;
use conversation::Conversation;
pub use handle::{Explanation, RunHandle, Stopped};
pub use promise::{Completed, PromiseHandle};
pub use run::{Reason, Run, RunStatus};
pub use runs::Runs;
pub use signal::{Signal, Signalled};
pub use start::{IdReuse, StartBuilder, Timeouts};
pub use value::Published;
pub use watch::Changes;
pub use wire::OutgoingCall;
use wire::{Interceptors, Rpc, Wire, Workflows, rpc};

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
    connection: Connection,
    interceptors: Interceptors,
    calls: Calls,
    /// None before the first connection, and after an outage where there is another server to go to.
    server: Arc<Mutex<Option<Server>>>,
    namespace: String,
    pub(crate) codecs: Codecs,
}

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
#[derive(Clone)]
pub(crate) struct Server {
    wire: Wire,
    pub(crate) conversation: Conversation,
}

impl Server {
    fn on(wire: Wire) -> Server {
        Server { conversation: Conversation::on(wire.clone()), wire }
    }

    pub(crate) async fn start(
        self,
        request: tonic::Request<Box<v1::StartWorkflowRequest>>,
    ) -> Result<v1::StartWorkflowResponse, Status> {
        // What travels beside the message, a trace, has no place on a shared stream; and a start that is too
        // large for the server should fail alone, not with everybody's stream.
        let alone = !request.metadata().is_empty() || request.get_ref().encoded_len() > limits::ASK_BYTES_MAX;
        if alone {
            let mut rpc = Workflows::from(Rpc(self.wire));
            return Box::pin(rpc.start_workflow(request.map(|request| *request)))
                .await
                .map(Response::into_inner);
        }
        self.conversation.start(request.into_inner()).await
    }
}

/// Whether a call may be sent a second time when the answer to the first was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    Safe,
    Unsafe,
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
        Client::new(Connection::Channel(channel), Interceptors::default())
    }

    pub(crate) fn new(connection: Connection, interceptors: Interceptors) -> Client {
        Client {
            connection,
            interceptors,
            calls: Calls::default(),
            server: Arc::default(),
            namespace: "default".to_owned(),
            codecs: Codecs::default(),
        }
    }

    pub(crate) fn with_calls(mut self, calls: Calls) -> Client {
        self.calls = calls;
        self
    }

    /// The same client for another namespace. Default: `default`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Client {
        self.namespace = namespace.into();
        self
    }

    /// The same client with one more codec: see [`PayloadCodec`]. Workers need the same ones.
    pub fn codec(mut self, codec: impl PayloadCodec) -> Client {
        self.codecs = self.codecs.and(codec);
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
        let request = v1::GetWorkflowRunRequest {
            run_id: run_id.into(),
            namespace_id: self.namespace.clone(),
            business_id: String::new(),
            ..Default::default()
        };
        self.read_run(request).await
    }

    /// Reads the run with this business id.
    pub async fn get_by_id(&self, business_id: impl Into<String>) -> Result<Run, Error> {
        let request = v1::GetWorkflowRunRequest {
            run_id: String::new(),
            namespace_id: self.namespace.clone(),
            business_id: business_id.into(),
            ..Default::default()
        };
        self.read_run(request).await
    }

    async fn read_run(&self, request: v1::GetWorkflowRunRequest) -> Result<Run, Error> {
        let answer = rpc!(self, Workflows.get_workflow_run, Safe, "read a run", request)?;
        let mut run = answer.workflow_run.unwrap_or_default();
        self.codecs.decode_run(&mut run).map_err(|error| Error::undecodable("the run", &error))?;
        Ok(Run::from_proto(run))
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
        let call = |server: Server| {
            let answer = rpc(R::from(Rpc(server.wire)));
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
        F: Fn(Server) -> Fut,
        Fut: Future<Output = Result<T, Status>>,
    {
        let mut patience = Patience::new(self.calls, self.connection.server_count());
        loop {
            let (error, sent) = match self.server().await {
                Ok(server) => match self.ask_once(attempted, self.calls.timeout, question(server)).await {
                    Ok(answer) => return Ok(answer),
                    Err(error) => (error, true),
                },
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
        if error.is_outage() && self.connection.server_count() > 1 {
            self.connection.prefer_next();
            *self.server.lock() = None;
        }
    }

    /// A run of many. One whose key is not here must not hide the others.
    pub(crate) fn readable(&self, run: v1::WorkflowRun) -> Run {
        let mut decoded = run.clone();
        match self.codecs.decode_run(&mut decoded) {
            Ok(()) => Run::from_proto(decoded),
            Err(error) => {
                tracing::warn!(run = %run.run_id, %error, "a listed run stays encoded");
                Run::from_proto(run)
            }
        }
    }

    /// The server that is talked to; connects where there is none.
    pub(crate) async fn server(&self) -> Result<Server, Error> {
        if let Some(server) = &*self.server.lock() {
            return Ok(server.clone());
        }
        // Boxed: connecting is large and rare, and this future is part of every call.
        let channel = Box::pin(self.connection.connect()).await?;
        let server = Server::on(self.interceptors.before(channel));
        Ok(self.server.lock().get_or_insert(server).clone())
    }
}

/// How long a failing call is repeated.
struct Patience {
    began: Instant,
    retry_for: Duration,
    delay: ReconnectDelay,
    /// Servers that were not asked yet: they are asked at once.
    unasked: usize,
}

impl Patience {
    fn new(calls: Calls, servers: usize) -> Patience {
        let delay = ReconnectDelay::new();
        Patience { began: Instant::now(), retry_for: calls.retry_for, delay, unasked: servers - 1 }
    }

    /// Waits before the next try, or gives the error back when there should be none.
    async fn bear(&mut self, error: Error, harmless: bool) -> Result<(), Error> {
        // A server that names a time has done nothing of what was asked.
        let later = match &error {
            Error::Refused(refusal) => refusal.retry_after,
            Error::InvalidAddress { .. }
            | Error::Unreachable { .. }
            | Error::TimedOut { .. }
            | Error::Encode { .. }
            | Error::Decode { .. }
            | Error::InvalidWorker(_)
            | Error::Store { .. }
            | Error::RunFailed(_)
            | Error::Rejected(_)
            | Error::RunPaused(_) => None,
        };
        let wait = match later {
            Some(later) => later,
            None if !error.is_outage() || !harmless => return Err(error),
            None if self.unasked > 0 => {
                self.unasked -= 1;
                return Ok(());
            }
            None => self.delay.next_delay(),
        };
        if self.began.elapsed() + wait > self.retry_for {
            return Err(error);
        }
        tokio::time::sleep(wait).await;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: &tonic::Status) -> Error {
        Error::refused("start a run", status)
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_borne_for_as_long_as_was_said_and_only_where_it_does_no_harm() {
        let calls = Calls { retry_for: Duration::from_secs(7), ..Calls::default() };
        let away = refused(&tonic::Status::unavailable("restarting"));
        let began = Instant::now();
        let mut patience = Patience::new(calls, 1);

        while patience.bear(away.clone(), true).await.is_ok() {}

        assert!(began.elapsed() > Duration::from_secs(1), "{:?}", began.elapsed());
        assert!(began.elapsed() <= Duration::from_secs(7), "{:?}", began.elapsed());
        assert!(Patience::new(calls, 1).bear(away, false).await.is_err(), "it may have been done already");
        let wrong = refused(&tonic::Status::invalid_argument("no queue"));
        assert!(Patience::new(calls, 1).bear(wrong, true).await.is_err(), "the next answer is the same");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_names_a_time_is_asked_again_then_whatever_was_asked() {
        let mut status = tonic::Status::resource_exhausted("slow down");
        status.metadata_mut().insert("grpc-retry-pushback-ms", "1500".parse().unwrap());
        let began = Instant::now();

        let again = Patience::new(Calls::default(), 1).bear(refused(&status), false).await;

        assert!(again.is_ok() && began.elapsed() == Duration::from_millis(1500), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn every_other_server_is_asked_at_once() {
        let away = refused(&tonic::Status::unavailable("restarting"));
        let calls = Calls { retry_for: Duration::ZERO, ..Calls::default() };
        let began = Instant::now();
        let mut patience = Patience::new(calls, 3);

        assert!(patience.bear(away.clone(), true).await.is_ok());
        assert!(patience.bear(away.clone(), true).await.is_ok());
        assert!(patience.bear(away, true).await.is_err());
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
