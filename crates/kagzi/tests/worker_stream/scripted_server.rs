//! A server in memory that says what the test tells it to: the real transport, no network.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use kagzi::{Error, Worker};
use kagzi_proto::v1::worker_service_server::{WorkerService, WorkerServiceServer};
use kagzi_proto::v1::{self, report, server_message, worker_message};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::{ReceiverStream, UnboundedReceiverStream};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status, Streaming};

/// Accepts worker streams. Dropping it stops the server.
pub struct ScriptedServer {
    pub channel: Channel,
    streams: mpsc::Receiver<Stream>,
    serving: JoinHandle<()>,
}

/// One stream of a worker, seen from the server.
pub struct Stream {
    from_worker: Streaming<v1::WorkerMessage>,
    to_worker: mpsc::Sender<Result<v1::ServerMessage, Status>>,
}

impl ScriptedServer {
    pub fn start() -> ScriptedServer {
        let (connections, accepted) = mpsc::unbounded_channel();
        let channel = Endpoint::from_static("http://in.memory").connect_with_connector_lazy(
            tower::service_fn(move |_| {
                let (client, server) = tokio::io::duplex(64 * 1024);
                let sent = connections.send(Ok::<_, std::io::Error>(server));
                async move {
                    sent.map_err(|_| std::io::Error::other("the server is gone"))?;
                    Ok::<_, std::io::Error>(TokioIo::new(client))
                }
            }),
        );
        let (opened, streams) = mpsc::channel(8);
        let serving = tokio::spawn(async move {
            let service = WorkerServiceServer::new(Script { opened });
            let connections = UnboundedReceiverStream::new(accepted);
            Server::builder().add_service(service).serve_with_incoming(connections).await.unwrap();
        });
        ScriptedServer { channel, streams, serving }
    }

    pub async fn worker(&self) -> Worker {
        let builder = kagzi::__private::worker_on(self.channel.clone(), "orders");
        builder.handle_signals(false).drain_timeout(Duration::from_secs(60)).build().await.unwrap()
    }

    pub async fn next_stream(&mut self) -> Stream {
        in_time(self.streams.recv()).await.expect("the server runs")
    }

    /// Takes the worker in as `w1` and hands out its hello.
    pub async fn welcome(&mut self) -> (Stream, v1::Hello) {
        self.welcome_with(v1::Welcome::default()).await
    }

    pub async fn welcome_with(&mut self, welcome: v1::Welcome) -> (Stream, v1::Hello) {
        let mut stream = self.next_stream().await;
        let worker_message::Message::Hello(hello) = stream.next().await else { panic!("no hello first") };
        let welcome = v1::Welcome { worker_id: "w1".into(), heartbeat_interval_ms: 3000, ..welcome };
        stream.send(server_message::Message::Welcome(welcome)).await;
        (stream, *hello)
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Stream {
    pub async fn send(&self, message: server_message::Message) {
        self.to_worker.send(Ok(v1::ServerMessage { message: Some(message) })).await.unwrap();
    }

    /// Ends the stream with an error, as a dying server would.
    pub async fn fail(self, status: Status) {
        self.to_worker.send(Err(status)).await.unwrap();
    }

    pub async fn assign(&self, run_id: &str, workflow_type: &str) {
        let assign = v1::Assign {
            lease: Some(lease(run_id)),
            workflow_type: workflow_type.to_owned(),
            ..Default::default()
        };
        self.send(server_message::Message::Assign(Box::new(assign))).await;
    }

    pub async fn commit(&self, seq: u64) {
        self.send(server_message::Message::Ack(v1::Ack { committed: vec![seq], answers: vec![] })).await;
    }

    pub async fn answer(&self, seq: u64, body: v1::answer::Body) {
        let answers = vec![v1::Answer { seq, body: Some(body) }];
        self.send(server_message::Message::Ack(v1::Ack { committed: vec![], answers })).await;
    }

    /// The next message of any kind.
    pub async fn next(&mut self) -> worker_message::Message {
        in_time(self.from_worker.message()).await.unwrap().expect("the worker is there").message.unwrap()
    }

    /// The next report; whose, under which number, and what.
    pub async fn next_report(&mut self) -> (String, u64, report::Body) {
        loop {
            if let worker_message::Message::Report(report) = self.next().await {
                return (report.lease.unwrap().run_id, report.seq, report.body.unwrap());
            }
        }
    }

    /// The next notice that a step of this run runs.
    pub async fn next_step_started(&mut self, run_id: &str) -> v1::StepStarted {
        loop {
            if let worker_message::Message::StepStarted(started) = self.next().await
                && started.lease == Some(lease(run_id))
            {
                return *started;
            }
        }
    }

    /// The runs in the next heartbeat.
    pub async fn next_heartbeat(&mut self) -> Vec<String> {
        loop {
            if let worker_message::Message::Heartbeat(heartbeat) = self.next().await {
                return heartbeat.runs.into_iter().map(|lease| lease.run_id).collect();
            }
        }
    }

    pub async fn expect_drain_notice(&mut self) {
        while !matches!(self.next().await, worker_message::Message::Draining(_)) {}
    }

    /// Waits for the goodbye and closes the stream, as a server does.
    pub async fn expect_goodbye(mut self) {
        while !matches!(self.next().await, worker_message::Message::Goodbye(_)) {}
    }
}

pub fn lease(run_id: &str) -> v1::LeaseRef {
    v1::LeaseRef { run_id: run_id.to_owned(), epoch: 1 }
}

/// How a worker's `run` ended.
pub async fn ended(worker: JoinHandle<Result<(), Error>>) -> Result<(), Error> {
    in_time(worker).await.expect("the worker does not die")
}

/// A virtual day: the clock stands still while anything happens, so only a hang gets there.
async fn in_time<T>(future: impl Future<Output = T>) -> T {
    let day = Duration::from_secs(24 * 3600);
    tokio::time::timeout(day, future).await.expect("waited for something that never happened")
}

struct Script {
    opened: mpsc::Sender<Stream>,
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<Response<T>, Status>> + Send + 'a>>;

/// The unary calls, which the SDK's worker never makes.
macro_rules! unused {
    ($($rpc:ident: $request:ident -> $response:ident,)*) => {$(
        fn $rpc<'a, 'b>(&'a self, _: Request<v1::$request>) -> Answer<'b, v1::$response>
        where
            'a: 'b,
            Self: 'b,
        {
            Box::pin(async { Err(Status::unimplemented("not in this script")) })
        }
    )*};
}

impl WorkerService for Script {
    type WorkStream = ReceiverStream<Result<v1::ServerMessage, Status>>;

    fn work<'a, 'b>(&'a self, request: Request<Streaming<v1::WorkerMessage>>) -> Answer<'b, Self::WorkStream>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async move {
            let (to_worker, messages) = mpsc::channel(64);
            let stream = Stream { from_worker: request.into_inner(), to_worker };
            self.opened.send(stream).await.map_err(|_| Status::unavailable("the test is over"))?;
            Ok(Response::new(ReceiverStream::new(messages)))
        })
    }

    unused! {
        register_worker: RegisterWorkerRequest -> RegisterWorkerResponse,
        worker_heartbeat: WorkerHeartbeatRequest -> WorkerHeartbeatResponse,
        deregister_worker: DeregisterWorkerRequest -> DeregisterWorkerResponse,
        list_workers: ListWorkersRequest -> ListWorkersResponse,
        get_worker: GetWorkerRequest -> GetWorkerResponse,
        drain_worker: DrainWorkerRequest -> DrainWorkerResponse,
        take_worker_offline: TakeWorkerOfflineRequest -> TakeWorkerOfflineResponse,
        poll_activity: PollActivityRequest -> PollActivityResponse,
        read_journal: ReadJournalRequest -> ReadJournalResponse,
        begin_step: BeginStepRequest -> BeginStepResponse,
        report_step_progress: ReportStepProgressRequest -> ReportStepProgressResponse,
        set_label: SetLabelRequest -> SetLabelResponse,
        set_value: SetValueRequest -> SetValueResponse,
        make_promise: MakePromiseRequest -> MakePromiseResponse,
        complete_step: CompleteStepRequest -> CompleteStepResponse,
        fail_step: FailStepRequest -> FailStepResponse,
        complete_workflow: CompleteWorkflowRequest -> CompleteWorkflowResponse,
        continue_run: ContinueRunRequest -> ContinueRunResponse,
        fail_workflow: FailWorkflowRequest -> FailWorkflowResponse,
        await_signal: AwaitSignalRequest -> AwaitSignalResponse,
        start_child: StartChildRequest -> StartChildResponse,
        schedule_sleep: ScheduleSleepRequest -> ScheduleSleepResponse,
        release_run: ReleaseRunRequest -> ReleaseRunResponse,
    }
}
