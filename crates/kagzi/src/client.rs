//! Starts runs, waits for them and stops them.

pub(crate) mod admin;
pub(crate) mod attempts;
mod conversation;
pub(crate) mod handle;
pub(crate) mod history;
pub(crate) mod page;
pub(crate) mod queue_handle;
pub(crate) mod runs;
pub(crate) mod schedule;
pub(crate) mod schedule_handle;
pub(crate) mod schedules;
pub(crate) mod start;
mod start_many;
pub(crate) mod workers;

use std::future::Future;
use std::sync::Arc;

use kagzi_proto::v1::admin_service_client::AdminServiceClient as AdminRpc;
use kagzi_proto::v1::schedule_service_client::ScheduleServiceClient;
use kagzi_proto::v1::worker_service_client::WorkerServiceClient as WorkersRpc;
use kagzi_proto::v1::workflow_service_client::WorkflowServiceClient;
use kagzi_proto::v1::{self, WorkflowRun};
use parking_lot::Mutex;
use prost::Message;
use serde::Serialize;
use tonic::transport::Channel;
use tonic::{Response, Status};

use crate::addresses::Addresses;
use crate::codec::{Codecs, PayloadCodec};
use crate::connection::Connection;
use crate::error::Error;
use crate::limits;
use admin::Admin;
use conversation::Conversation;
use handle::RunHandle;
use runs::Runs;
use schedule::ScheduleBuilder;
use schedule_handle::ScheduleHandle;
use schedules::Schedules;
use start::StartBuilder;

/// Talks to a server. Cheap to clone; clones share one connection.
#[derive(Clone)]
pub struct Client {
    connection: Connection,
    server: Arc<Mutex<Server>>,
    namespace: String,
    pub(crate) codecs: Codecs,
}

/// The server that is talked to at the moment.
#[derive(Clone)]
pub(crate) struct Server {
    channel: Channel,
    pub(crate) conversation: Conversation,
}

impl Server {
    fn on(channel: Channel) -> Server {
        Server { conversation: Conversation::on(channel.clone()), channel }
    }

    pub(crate) async fn start(
        self,
        request: tonic::Request<Box<v1::StartWorkflowRequest>>,
    ) -> Result<v1::StartWorkflowResponse, Status> {
        // What travels beside the message, a trace, has no place on a shared stream; and a start that is too large
        // for the server should fail alone, not with everybody's stream.
        let alone = !request.metadata().is_empty() || request.get_ref().encoded_len() > limits::ASK_BYTES_MAX;
        if alone {
            let mut rpc = WorkflowServiceClient::new(self.channel);
            return Box::pin(rpc.start_workflow(request.map(|request| *request)))
                .await
                .map(Response::into_inner);
        }
        self.conversation.start(request.into_inner()).await
    }
}

/// A channel that becomes the client of a service.
pub(crate) struct Rpc(Channel);

impl From<Rpc> for AdminRpc<Channel> {
    fn from(Rpc(channel): Rpc) -> Self {
        AdminRpc::new(channel).max_decoding_message_size(limits::DECODE_BYTES_MAX)
    }
}

impl From<Rpc> for WorkersRpc<Channel> {
    fn from(Rpc(channel): Rpc) -> Self {
        WorkersRpc::new(channel).max_decoding_message_size(limits::DECODE_BYTES_MAX)
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
    pub async fn connect(addresses: impl Into<Addresses>) -> Result<Client, Error> {
        let connection = Connection::to(&addresses.into())?;
        let channel = connection.connect().await?;
        Ok(Client::with(connection, channel))
    }

    /// A client on a channel that is already made. For embedded mode and tests.
    pub fn from_channel(channel: Channel) -> Client {
        Client::with(Connection::Channel(channel.clone()), channel)
    }

    fn with(connection: Connection, channel: Channel) -> Client {
        let server = Arc::new(Mutex::new(Server::on(channel)));
        Client { connection, server, namespace: "default".to_owned(), codecs: Codecs::default() }
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

    #[cfg(feature = "embedded")]
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
        StartBuilder::new(self.clone(), workflow_type.into(), task_queue.into(), &input)
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
    pub async fn get(&self, run_id: impl Into<String>) -> Result<WorkflowRun, Error> {
        let request = v1::GetWorkflowRunRequest {
            run_id: run_id.into(),
            namespace_id: self.namespace.clone(),
            business_id: String::new(),
        };
        self.read_run(request).await
    }

    /// Reads the run with this business id.
    pub async fn get_by_id(&self, business_id: impl Into<String>) -> Result<WorkflowRun, Error> {
        let request = v1::GetWorkflowRunRequest {
            run_id: String::new(),
            namespace_id: self.namespace.clone(),
            business_id: business_id.into(),
        };
        self.read_run(request).await
    }

    async fn read_run(&self, request: v1::GetWorkflowRunRequest) -> Result<WorkflowRun, Error> {
        let answer = self
            .call("read a run", Repeat::Safe, move |mut rpc| {
                let request = request.clone();
                async move { rpc.get_workflow_run(request).await }
            })
            .await?;
        let mut run = answer.workflow_run.unwrap_or_default();
        self.codecs.decode_run(&mut run).map_err(|error| Error::undecodable("the run", &error))?;
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

    /// One unary call.
    pub(crate) async fn call<T, F, Fut>(
        &self,
        attempted: &'static str,
        repeat: Repeat,
        rpc: F,
    ) -> Result<T, Error>
    where
        F: Fn(WorkflowServiceClient<Channel>) -> Fut,
        Fut: Future<Output = Result<Response<T>, Status>>,
    {
        let client =
            |channel| WorkflowServiceClient::new(channel).max_decoding_message_size(limits::DECODE_BYTES_MAX);
        self.call_on(attempted, repeat, |channel| rpc(client(channel))).await
    }

    /// The same for schedules.
    pub(crate) async fn call_schedules<T, F, Fut>(
        &self,
        attempted: &'static str,
        repeat: Repeat,
        rpc: F,
    ) -> Result<T, Error>
    where
        F: Fn(ScheduleServiceClient<Channel>) -> Fut,
        Fut: Future<Output = Result<Response<T>, Status>>,
    {
        let client =
            |channel| ScheduleServiceClient::new(channel).max_decoding_message_size(limits::DECODE_BYTES_MAX);
        self.call_on(attempted, repeat, |channel| rpc(client(channel))).await
    }

    /// The same for any other service.
    pub(crate) async fn call_rpc<R, T, F, Fut>(
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
        self.call_on(attempted, repeat, |channel| rpc(R::from(Rpc(channel)))).await
    }

    async fn call_on<T, F, Fut>(&self, attempted: &'static str, repeat: Repeat, rpc: F) -> Result<T, Error>
    where
        F: Fn(Channel) -> Fut,
        Fut: Future<Output = Result<Response<T>, Status>>,
    {
        let call = |server: Server| {
            let answer = rpc(server.channel);
            async move { Ok(answer.await?.into_inner()) }
        };
        self.ask(attempted, repeat, call).await
    }

    /// One question to a server. When its server cannot be reached the next takes over; the call itself is repeated there
    /// only if that can do no harm.
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
        let mut servers_left = self.connection.server_count();
        loop {
            servers_left -= 1;
            let server = self.server.lock().clone();
            let status = match question(server).await {
                Ok(answer) => return Ok(answer),
                Err(status) => status,
            };
            let error = Error::refused(attempted, &status);
            if error.is_outage() && self.connection.server_count() > 1 {
                self.connection.prefer_next();
                // Boxed: a failover is large and rare, and this future is part of every call.
                let server = Server::on(Box::pin(self.connection.connect()).await?);
                *self.server.lock() = server;
                if repeat == Repeat::Safe && servers_left > 0 {
                    continue;
                }
            }
            return Err(error);
        }
    }
}
