//! One test's world: a directory, a server process on its own port, and clients that outlive the server.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kagzi_proto::v1::{
    self, WorkflowStatus, admin_service_client::AdminServiceClient,
    schedule_service_client::ScheduleServiceClient, worker_service_client::WorkerServiceClient,
    workflow_service_client::WorkflowServiceClient,
};
use tempfile::TempDir;
use tonic::{
    Code, Status,
    transport::{Channel, Endpoint},
};
use tonic_health::pb::health_client::HealthClient;

use crate::{
    CrashPoint, Evidence, Execution, ExecutionLog, HandWorker, Home, Process, Script, StepResult, eventually,
    metrics, witness,
};

/// The queue of every fault test; each test has its own server, so one name is enough.
pub const QUEUE: &str = "faults";

/// Paths of the two binaries.
#[derive(Debug, Clone, Copy)]
pub struct Binaries {
    pub server: &'static str,
    pub worker: &'static str,
}

/// How soon a silent worker is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// After a second: for tests that lose workers.
    Fast,
    /// After a few seconds: for tests that lose workers, and whose database may be busy.
    Brisk,
    /// Late enough that a busy machine loses nobody by accident.
    Steady,
    /// About as in production: for tests with much load, or with outages that must cost nobody a lease.
    Calm,
}

impl Pace {
    /// Heartbeat, stale and lease, in milliseconds.
    fn millis(self) -> (u64, u64, u64) {
        match self {
            Pace::Fast => (200, 1_000, 2_000),
            Pace::Brisk => (300, 3_000, 4_000),
            Pace::Steady => (500, 8_000, 10_000),
            Pace::Calm => (2_000, 20_000, 30_000),
        }
    }

    pub fn lease(self) -> Duration {
        Duration::from_millis(self.millis().2)
    }
}

pub struct Stage {
    pub log: ExecutionLog,
    /// The same over all restarts.
    pub address: SocketAddr,
    pub pace: Pace,
    /// Arguments of the server beside the usual ones.
    more_args: Vec<String>,
    binaries: Binaries,
    server: Mutex<Option<Process>>,
    channel: Channel,
    home: Home,
    /// Runs whose start was answered, by this server or a sibling: they must survive everything.
    acknowledged: Arc<Mutex<Vec<String>>>,
    dir: Arc<TempDir>,
}

impl Stage {
    /// A new directory and a running server, on a file of its own or on this PostgreSQL database.
    pub async fn open(binaries: Binaries, pace: Pace, database: Option<String>) -> Stage {
        let dir = tempfile::Builder::new().prefix("kagzi-faults-").tempdir().expect("there is room in /tmp");
        let home = match database {
            Some(url) => Home::Postgres(url),
            None => Home::File(dir.path().join("kagzi.db")),
        };
        Stage::start_in(Arc::new(dir), home, binaries, pace, Arc::default()).await
    }

    /// The same on a file, where somebody dies at a commit of this server; the one that is started after it
    /// is sound.
    pub async fn open_crashing(binaries: Binaries, pace: Pace, crash: CrashPoint) -> Stage {
        let stage = Stage::open(binaries, pace, None).await;
        stage.kill_server().await;
        let mut args = server_args(&stage.home, stage.address, pace);
        args.extend(crash.args());
        args.extend(["--pid-file".into(), pid_file(&stage.dir).display().to_string()]);
        let server = serve(&binaries, &stage.dir, &args).await.expect("its port is free again");
        stage.put_server(server);
        stage
    }

    /// The same on a file, where `strace` writes down what the server asks the kernel for.
    pub async fn open_traced(binaries: Binaries, pace: Pace) -> Stage {
        let stage = Stage::open(binaries, pace, None).await;
        stage.kill_server().await;
        let mut args = witness::arguments(&transcript_file(&stage.dir).display().to_string());
        args.push(binaries.server.to_owned());
        args.extend(server_args(&stage.home, stage.address, pace));
        let mut server = Process::spawn("strace", &args, &stage.dir.path().join("server.log"));
        server.announced("listening on ").await.expect("strace may trace, and the port is free again");
        stage.put_server(server);
        stage
    }

    /// Ends a traced server and reads what was written down of it.
    pub async fn transcript(&self) -> String {
        let mut server = self.take_server();
        let pid = server.pid().to_string();
        // Not by SIGKILL: an answer that has reached its asker can still be within the call that sends it,
        // and the transcript of a killed server does not say how that call ended.
        server.terminate();
        let status = server.ended().await;
        assert!(status.success(), "{status}\n{}", self.said());
        // Short numbers are padded.
        let end = |line: &str| {
            line.strip_prefix(&*pid).is_some_and(|rest| rest.trim_start() == "+++ exited with 0 +++")
        };
        eventually("strace ends too", async || {
            let text = std::fs::read_to_string(transcript_file(&self.dir)).ok()?;
            text.lines().any(end).then_some(text)
        })
        .await
    }

    /// Another server on the same database, with its own clients, for the same workers and runs.
    pub async fn sibling(&self) -> Stage {
        self.sibling_on(self.home.clone()).await
    }

    /// A sibling of an older version, which does not know this kind of event. It stays so when it is
    /// restarted.
    pub async fn older_sibling(&self, unaware_of: u8) -> Stage {
        let mut sibling = self.sibling().await;
        sibling.more_args = vec!["--unaware-of".into(), unaware_of.to_string()];
        sibling.kill_server().await;
        sibling.restart_server().await;
        sibling
    }

    /// The same, where the sibling reaches the database by another URL.
    pub async fn sibling_on(&self, home: Home) -> Stage {
        Stage::start_in(self.dir.clone(), home, self.binaries, self.pace, self.acknowledged.clone()).await
    }

    async fn start_in(
        dir: Arc<TempDir>,
        home: Home,
        binaries: Binaries,
        pace: Pace,
        acknowledged: Arc<Mutex<Vec<String>>>,
    ) -> Stage {
        let mut ports_left = PORTS_TRIED;
        let (server, address) = loop {
            let address = SocketAddr::from(([127, 0, 0, 1], random_port()));
            if let Some(server) = serve(&binaries, &dir, &server_args(&home, address, pace)).await {
                break (server, address);
            }
            ports_left -= 1;
            if ports_left == 0 {
                let said = std::fs::read_to_string(server_log(&dir)).unwrap_or_default();
                panic!("a server ended at its start on {PORTS_TRIED} ports, one after the other\n{said}");
            }
        };
        let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("a socket address is a URL");
        Stage {
            log: ExecutionLog::open(dir.path()),
            address,
            pace,
            binaries,
            more_args: Vec::new(),
            server: Mutex::new(Some(server)),
            channel: endpoint.connect_lazy(),
            home,
            acknowledged,
            dir,
        }
    }

    pub fn file(&self) -> &Path {
        self.home.file()
    }

    /// The server process, for a test that ends it in its own way.
    pub fn take_server(&self) -> Process {
        self.server_slot().take().expect("the server runs")
    }

    /// Gives the server process back.
    pub fn put_server(&self, server: Process) {
        *self.server_slot() = Some(server);
    }

    /// Makes every run of this namespace that has ended look as if it had ended so much earlier; the server
    /// must be down. Its history still says the truth, so such a run must be gone when the stage is closed.
    pub fn let_ended_runs_age(&self, namespace: &str, by: Duration) {
        self.home.let_ended_runs_age(namespace, by);
    }

    /// SIGKILL to the server.
    pub async fn kill_server(&self) {
        self.take_server().kill().await;
    }

    /// Starts the server again on the same file and the same port.
    pub async fn restart_server(&self) {
        assert!(self.server_slot().is_none(), "the former server is gone");
        let mut args = server_args(&self.home, self.address, self.pace);
        args.extend_from_slice(&self.more_args);
        let server = serve(&self.binaries, &self.dir, &args).await;
        let server = server.unwrap_or_else(|| panic!("the server does not start\n{}", self.said()));
        *self.server_slot() = Some(server);
    }

    pub fn server_pid(&self) -> u32 {
        self.server_slot().as_ref().expect("the server runs").pid()
    }

    /// See [`Process::memory_kib`].
    pub fn server_memory_kib(&self, name: &str) -> u64 {
        self.server_slot().as_ref().expect("the server runs").memory_kib(name)
    }

    fn server_slot(&self) -> MutexGuard<'_, Option<Process>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another server process on the same file, on any port; it is not expected to live.
    pub fn second_server(&self) -> Process {
        let args = server_args(&self.home, SocketAddr::from(([127, 0, 0, 1], 0)), self.pace);
        Process::spawn(self.binaries.server, &args, &self.dir.path().join("second-server.log"))
    }

    /// A worker process that is registered. `args` are those of `fault-worker`.
    pub async fn worker(&self, args: &[&str]) -> Process {
        self.worker_at(self.address, args).await
    }

    /// Starts another server or worker in the place of one that has died, and says whether anybody had.
    pub async fn replace_dead(&self, worker: &mut Process, args: &[&str]) -> bool {
        let server_died = !self.server_slot().as_mut().expect("the server is ours").is_running();
        if server_died {
            drop(self.server_slot().take());
            self.restart_server().await;
        }
        let worker_died = !worker.is_running();
        if worker_died {
            *worker = self.spawn_worker(self.address, args);
        }
        server_died || worker_died
    }

    /// Tells the server whom to kill, should it have to.
    pub fn mark_worker(&self, worker: &Process) {
        std::fs::write(pid_file(&self.dir), worker.pid().to_string()).expect("the stage can be written");
    }

    /// A worker that reaches the server at another address.
    pub async fn worker_at(&self, address: impl ToString, args: &[&str]) -> Process {
        let process = self.spawn_worker(address, args);
        let pid = process.pid();
        eventually("the worker registers", async || self.workers_of(pid).await.into_iter().next()).await;
        process
    }

    /// A worker process, registered or not. The address may be a list, as users write it.
    pub fn spawn_worker(&self, address: impl ToString, args: &[&str]) -> Process {
        let mut all = vec!["--address".into(), address.to_string()];
        all.extend(["--dir".into(), self.dir.path().display().to_string()]);
        all.extend(args.iter().map(ToString::to_string));
        Process::spawn(self.binaries.worker, &all, &self.dir.path().join("workers.log"))
    }

    pub fn workflows(&self) -> WorkflowServiceClient<Channel> {
        WorkflowServiceClient::new(self.channel.clone()).max_decoding_message_size(16 << 20)
    }

    pub fn schedules(&self) -> ScheduleServiceClient<Channel> {
        ScheduleServiceClient::new(self.channel.clone())
    }

    pub fn admin(&self) -> AdminServiceClient<Channel> {
        AdminServiceClient::new(self.channel.clone())
    }

    /// gRPC's own health service.
    pub fn health(&self) -> HealthClient<Channel> {
        HealthClient::new(self.channel.clone())
    }

    pub fn registry(&self) -> WorkerServiceClient<Channel> {
        WorkerServiceClient::new(self.channel.clone()).max_decoding_message_size(16 << 20)
    }

    pub async fn hand_worker(&self, workflow_type: &str) -> HandWorker {
        HandWorker::register(self.registry(), workflow_type).await
    }

    /// The workers that a process registered, newest first.
    pub async fn workers_of(&self, pid: u32) -> Vec<v1::Worker> {
        let request = v1::ListWorkersRequest { page_size: 100, ..Default::default() };
        let all = self.registry().list_workers(request).await;
        let all = all.expect("workers can be listed").into_inner().workers;
        all.into_iter().filter(|worker| worker.pid == pid.cast_signed()).collect()
    }

    /// Starts a run of type `script`.
    pub async fn start(&self, script: &Script) -> String {
        self.start_with(start_request("script", script)).await.expect("a sound start").run_id
    }

    /// Starts any run and remembers that it was acknowledged.
    pub async fn start_with(
        &self,
        request: v1::StartWorkflowRequest,
    ) -> Result<v1::StartWorkflowResponse, Status> {
        let started = self.workflows().start_workflow(request).await?.into_inner();
        let mut acknowledged = self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner);
        acknowledged.push(started.run_id.clone());
        Ok(started)
    }

    /// Starts a run whatever happens to the server meanwhile. Its business id makes that one run.
    pub async fn start_surely(&self, request: v1::StartWorkflowRequest) -> String {
        assert!(!request.business_id.is_empty(), "a start that is sent twice needs a business id");
        let started =
            eventually("the run is started", async || match self.start_with(request.clone()).await {
                Ok(started) => Some(started),
                Err(status) if outage(&status) => None,
                Err(status) => panic!("starting {}: {status}", request.business_id),
            });
        started.await.run_id
    }

    /// The run as it is now.
    pub async fn run(&self, run: &str) -> v1::WorkflowRun {
        let request = v1::GetWorkflowRunRequest { run_id: run.into(), ..Default::default() };
        let answer = self.workflows().get_workflow_run(request).await.expect("a started run can be read");
        answer.into_inner().workflow_run.expect("an answer has its run")
    }

    /// Waits until the run has this status.
    pub async fn until(&self, run: &str, status: WorkflowStatus) -> v1::WorkflowRun {
        eventually(&format!("run {run} becomes {}", status.as_str_name()), async || {
            Some(self.run(run).await).filter(|seen| seen.status() == status)
        })
        .await
    }

    /// Waits for the end of a run, over outages of the server.
    pub async fn finished(&self, run: &str) -> v1::WorkflowRun {
        let request =
            v1::WaitWorkflowRunRequest { run_id: run.into(), timeout_ms: 1_000, ..Default::default() };
        eventually(&format!("run {run} ends"), async || {
            match self.workflows().wait_workflow_run(request.clone()).await {
                Ok(answer) => {
                    let answer = answer.into_inner();
                    answer.workflow_run.filter(|_| answer.finished).map(|run| *run)
                }
                Err(status) if outage(&status) => None,
                Err(status) => panic!("waiting for run {run}: {status}"),
            }
        })
        .await
    }

    /// Waits until a run has completed.
    pub async fn completed(&self, run: &str) -> v1::WorkflowRun {
        let ended = self.finished(run).await;
        assert_eq!(ended.status(), WorkflowStatus::Completed, "{:?}", ended.error);
        ended
    }

    /// Waits until a step of the run has begun `count` times, and tells how.
    pub async fn began(&self, run: &str, step: &str, count: usize) -> Vec<Execution> {
        eventually(&format!("step {step} of run {run} begins {count} times"), async || {
            Some(self.log.began(run, step)).filter(|executions| executions.len() >= count)
        })
        .await
    }

    /// The failure handler that the run's history names; none yet, or none because the server is away.
    pub async fn handler_started(&self, run: &str) -> Option<String> {
        let request = v1::ListRunEventsRequest { run_id: run.into(), ..Default::default() };
        let events = match self.workflows().list_run_events(request).await {
            Ok(answer) => answer.into_inner().events,
            Err(status) if outage(&status) => return None,
            Err(status) => panic!("the history of run {run}: {status}"),
        };
        let started = events.into_iter().find(|event| event.kind() == v1::EventKind::HandlerStarted)?;
        let detail: serde_json::Value = serde_json::from_str(&started.detail_json).expect("details are JSON");
        Some(detail["handler"].as_str().expect("it is named").to_owned())
    }

    /// Every run that handles the failure of this one.
    pub async fn handlers_of(&self, run: &str) -> Vec<v1::WorkflowRun> {
        let all = self.workflows().list_workflow_runs(v1::ListWorkflowRunsRequest::default()).await;
        let all = all.expect("runs can be listed").into_inner().workflow_runs;
        all.into_iter().filter(|other| other.handler_of == run).collect()
    }

    /// The whole history, as kinds.
    pub async fn kinds(&self, run: &str) -> Vec<String> {
        self.events(run).await.into_iter().map(|event| event.kind().word()).collect()
    }

    pub async fn events(&self, run: &str) -> Vec<v1::RunEvent> {
        let request = v1::ListRunEventsRequest { run_id: run.into(), ..Default::default() };
        self.workflows().list_run_events(request).await.expect("a history can be read").into_inner().events
    }

    /// All events of a run, page by page.
    pub async fn whole_history(&self, run: &str) -> Vec<v1::RunEvent> {
        let mut events: Vec<v1::RunEvent> = Vec::new();
        let mut page_token = String::new();
        loop {
            let request = v1::ListRunEventsRequest {
                run_id: run.into(),
                page_token,
                page_size: 5_000,
                ..Default::default()
            };
            let page = self.workflows().list_run_events(request).await.expect("a history can be read");
            let page = page.into_inner();
            events.extend(page.events);
            if page.next_page_token.is_empty() {
                return events;
            }
            page_token = page.next_page_token;
        }
    }

    pub async fn explain(&self, run: &str) -> v1::ExplainWorkflowRunResponse {
        let request = v1::ExplainWorkflowRunRequest { run_id: run.into(), ..Default::default() };
        self.workflows().explain_workflow_run(request).await.expect("a run can be explained").into_inner()
    }

    /// What a script that has completed was told from outside, in order.
    pub async fn heard(&self, run: &str) -> Vec<String> {
        let output = self.completed(run).await.output.expect("it returned something").data;
        let results: Vec<StepResult> = serde_json::from_slice(&output).expect("results of a script");
        results.into_iter().filter_map(StepResult::heard).collect()
    }

    pub async fn cancel(&self, run: &str) -> Result<v1::CancelWorkflowRunResponse, Status> {
        let request = v1::CancelWorkflowRunRequest { run_id: run.into(), ..Default::default() };
        Ok(self.workflows().cancel_workflow_run(request).await?.into_inner())
    }

    /// What `/readyz` says.
    pub async fn ready(&self) -> (u16, String) {
        metrics::get(self.address, "/readyz").await
    }

    pub async fn metric(&self, name: &str) -> f64 {
        metrics::metric(self.address, name).await
    }

    /// Kills the server and checks what it leaves behind. Every test ends here; siblings are dropped before.
    pub async fn close(self) -> Evidence {
        let home = self.home.clone();
        self.close_in(home).await
    }

    /// The same, where the database is looked at by another URL than the server's.
    pub async fn close_on(self, url: &str) -> Evidence {
        self.close_in(Home::Postgres(url.to_owned())).await
    }

    async fn close_in(self, home: Home) -> Evidence {
        let server = self.server_slot().take();
        if let Some(server) = server {
            server.kill().await;
        }
        let acknowledged = self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner).clone();
        home.check(&self.log, &acknowledged).await
    }

    fn said(&self) -> String {
        let read = |name: &str| std::fs::read_to_string(self.dir.path().join(name)).unwrap_or_default();
        let tail = |text: String| {
            let lines: Vec<_> = text.lines().collect();
            lines[lines.len().saturating_sub(40)..].join("\n")
        };
        format!("--- server\n{}\n--- workers\n{}", tail(read("server.log")), tail(read("workers.log")))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.said());
        }
    }
}

/// A start with a script as its input.
pub fn start_request(workflow_type: &str, script: &Script) -> v1::StartWorkflowRequest {
    let data = serde_json::to_vec(script).expect("a script is JSON");
    v1::StartWorkflowRequest {
        task_queue: QUEUE.into(),
        workflow_type: workflow_type.into(),
        input: Some(v1::Payload { data: data.into(), content_type: String::new() }),
        // A lost worker's run waits for its next attempt only this long.
        retry_policy: Some(v1::RetryPolicy { initial_interval_ms: Some(20), ..Default::default() }),
        ..Default::default()
    }
}

/// The server is away, or was while it was asked.
fn outage(status: &Status) -> bool {
    // A connection that breaks under a call is told as UNKNOWN or CANCELLED, depending on where it broke.
    matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled)
}

/// A server that ends at its start is tried again on another port, because the port may have been taken.
const PORTS_TRIED: u32 = 10;

/// Below the ephemeral ports, so that no connection of another test takes the port while the server is down.
fn random_port() -> u16 {
    let random = uuid::Uuid::new_v4().as_u64_pair().0 >> 48;
    10_000 + u16::try_from(random % 20_000).expect("below 20,000")
}

fn transcript_file(dir: &TempDir) -> PathBuf {
    dir.path().join("system-calls")
}

fn pid_file(dir: &TempDir) -> PathBuf {
    dir.path().join("worker.pid")
}

fn server_args(home: &Home, listen: SocketAddr, pace: Pace) -> Vec<String> {
    let (heartbeat, stale, lease) = pace.millis();
    let pairs = [
        ("--store", home.url()),
        ("--listen", listen.to_string()),
        ("--heartbeat-ms", heartbeat.to_string()),
        ("--stale-ms", stale.to_string()),
        ("--lease-ms", lease.to_string()),
    ];
    pairs.into_iter().flat_map(|(name, value)| [name.to_owned(), value]).collect()
}

fn server_log(dir: &TempDir) -> PathBuf {
    dir.path().join("server.log")
}

/// A server that serves, or none when it ended at its start, perhaps because the port is taken.
async fn serve(binaries: &Binaries, dir: &TempDir, args: &[String]) -> Option<Process> {
    let mut server = Process::spawn(binaries.server, args, &server_log(dir));
    server.announced("listening on ").await?;
    Some(server)
}
