//! A run that cannot be handed over, on a real database whose rows are damaged: it is that run's affair. It
//! waits longer and longer, ends in quarantine with the reason, and its worker goes on with everything else.

use std::{path::Path, sync::Arc, time::Duration};

use kagzi_proto::v1::{
    self, server_message::Message as Down, worker_message::Message as Up,
    worker_service_client::WorkerServiceClient, workflow_service_client::WorkflowServiceClient,
};
use kagzi_server::{Embedded, ManualClock, Settings, StoreUrl, Timestamp};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

const SOON: Duration = Duration::from_secs(60);

struct Stage {
    clock: ManualClock,
    server: Embedded,
    workflows: WorkflowServiceClient<Channel>,
    workers: WorkerServiceClient<Channel>,
}

impl Stage {
    async fn open(file: &Path, clock: &ManualClock) -> Stage {
        // The clock is moved by minutes: no worker is stale and no lease runs out by that.
        let long = Duration::from_secs(100_000);
        let settings =
            Settings { stale_after: long, lease: long, heartbeat_interval: long / 10, ..Settings::default() };
        let store = StoreUrl::Sqlite(file.to_owned());
        let server = Embedded::open_with(&store, settings, Arc::new(clock.clone())).await.unwrap();
        let channel = server.channel();
        let workflows = WorkflowServiceClient::new(channel.clone());
        Stage { clock: clock.clone(), server, workflows, workers: WorkerServiceClient::new(channel) }
    }

    async fn start(&mut self, id: &str, workflow_type: &str, handler: &str) -> String {
        let start = v1::StartWorkflowRequest {
            business_id: id.into(),
            workflow_type: workflow_type.into(),
            task_queue: "orders".into(),
            on_failure_workflow: handler.into(),
            ..Default::default()
        };
        self.workflows.start_workflow(start).await.unwrap().into_inner().run_id
    }

    /// The only run of a type, as it is listed: whoever reads a handler alone is told its input, too.
    async fn run_of_type(&mut self, workflow_type: &str) -> v1::WorkflowRun {
        let list = v1::ListWorkflowRunsRequest { workflow_type: workflow_type.into(), ..Default::default() };
        self.workflows.list_workflow_runs(list).await.unwrap().into_inner().workflow_runs.remove(0)
    }

    /// How many seconds passed between each time that the run was given back and the next claim.
    async fn pauses(&mut self, run_id: &str) -> Vec<i64> {
        let kinds = [v1::EventKind::RunReleased, v1::EventKind::RunClaimed];
        let list = v1::ListRunEventsRequest {
            run_id: run_id.into(),
            kinds: kinds.map(|kind| kind as i32).into(),
            ..Default::default()
        };
        let events = self.workflows.list_run_events(list).await.unwrap().into_inner().events;
        let at = |event: &v1::RunEvent| event.at.as_ref().unwrap().seconds;
        let pairs = events.windows(2).filter(|pair| pair[0].kind() == v1::EventKind::RunReleased);
        pairs.map(|pair| at(&pair[1]) - at(&pair[0])).collect()
    }
}

/// A worker's stream: what goes up, and the runs that come down.
struct Worker {
    up: mpsc::Sender<v1::WorkerMessage>,
    down: tonic::Streaming<v1::ServerMessage>,
    reports: u64,
}

impl Worker {
    async fn connect(stage: &mut Stage, types: &[&str]) -> Worker {
        let (up, messages) = mpsc::channel(16);
        let registration = v1::RegisterWorkerRequest {
            task_queue: "orders".into(),
            workflow_types: types.iter().map(|name| (*name).into()).collect(),
            ..Default::default()
        };
        let hello = v1::Hello { registration: Some(registration), ..Default::default() };
        up.send(v1::WorkerMessage { message: Some(Up::Hello(Box::new(hello))) }).await.unwrap();
        let down = stage.workers.work(ReceiverStream::new(messages)).await.unwrap().into_inner();
        let mut worker = Worker { up, down, reports: 0 };
        assert!(matches!(worker.hear().await, Down::Welcome(_)));
        worker
    }

    async fn hear(&mut self) -> Down {
        let heard = tokio::time::timeout(SOON, self.down.message()).await.expect("something is said");
        heard.expect("the stream is sound").expect("the stream goes on").message.unwrap()
    }

    /// Takes the next run and ends it.
    async fn end_next(&mut self, end: impl FnOnce() -> v1::report::Body) -> String {
        let lease = loop {
            match self.hear().await {
                Down::Assign(assign) => break assign.lease.unwrap(),
                Down::Ack(_) => {}
                other => panic!("{other:?}"),
            }
        };
        self.reports += 1;
        let report = v1::Report { seq: self.reports, lease: Some(lease.clone()), body: Some(end()) };
        self.up.send(v1::WorkerMessage { message: Some(Up::Report(report)) }).await.unwrap();
        lease.run_id
    }
}

fn completes() -> v1::report::Body {
    v1::report::Body::RunCompleted(v1::RunCompleted::default())
}

fn fails() -> v1::report::Body {
    let failure = v1::Failure { code: "BROKEN".into(), message: "it broke".into(), ..Default::default() };
    v1::report::Body::RunFailed(Box::new(v1::RunFailed { failure: Some(failure), ..Default::default() }))
}

#[tokio::test]
async fn a_run_that_cannot_be_handed_over_ends_in_quarantine_and_its_worker_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kagzi.db");
    let clock = ManualClock::new(Timestamp::from_millis(1_900_000_000_000));
    // A run fails, and its handler waits for a worker.
    let mut stage = Stage::open(&file, &clock).await;
    let failed = stage.start("victim", "order", "clean-up").await;
    let mut worker = Worker::connect(&mut stage, &["order"]).await;
    assert_eq!(worker.end_next(fails).await, failed);
    worker.hear().await;
    drop(worker);
    stage.server.close().await;
    // What the handler is told comes from the failed run, which cannot be read any more.
    let db = rusqlite::Connection::open(&file).unwrap();
    let damaged = db.execute("UPDATE runs SET options = '{' WHERE business_id = 'victim'", []).unwrap();
    assert_eq!(damaged, 1);
    drop(db);

    let mut stage = Stage::open(&file, &clock).await;
    let mut worker = Worker::connect(&mut stage, &["order", "clean-up"]).await;
    let (mut rounds, mut neighbours) = (0, 0);
    let quarantined = loop {
        let run = stage.run_of_type("clean-up").await;
        if run.status() == v1::WorkflowStatus::Paused {
            break run;
        }
        rounds += 1;
        assert!(rounds < 500, "{run:?}");
        // The worker is on the same stream, and has room for others.
        let neighbour = stage.start(&format!("neighbour-{rounds}"), "order", "").await;
        assert_eq!(worker.end_next(completes).await, neighbour);
        neighbours += 1;
        stage.clock.advance(Duration::from_secs(1));
    };

    assert_eq!(quarantined.dispatch_count, 10, "after a bounded number of dispatches");
    let why = quarantined.status_detail;
    assert!(why.contains("10 times") && why.contains("could not be handed over"), "{why}");
    assert!(neighbours >= 5, "{neighbours}");
    let pauses = stage.pauses(&quarantined.run_id).await;
    assert_eq!((pauses.len(), pauses[0]), (9, 0), "the first one is free: {pauses:?}");
    assert!(pauses.is_sorted() && pauses[8] >= 32, "longer and longer: {pauses:?}");
    stage.server.close().await;
}
