//! A client that asks and does not read. What the process holds is measured, so this test has one of its own.

use std::{net::SocketAddr, time::Duration};

use kagzi_proto::v1::{
    self, ask::Body as Asked, worker_service_client::WorkerServiceClient,
    workflow_service_client::WorkflowServiceClient,
};
use kagzi_server::{
    Options, Server, StoreUrl,
    config::{Loaded, Sources},
};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Endpoint;

const RESULT_BYTES: usize = 2_000_000;
const WAITS: u64 = 400;
/// All results together are eight times as much.
const GROWTH_BYTES_MAX: usize = 100_000_000;

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("this is Linux");
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * rustix::param::page_size()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_that_a_client_does_not_read_are_not_held_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let config = Loaded::load(Sources::default()).unwrap().config;
    let options = Options {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        ..config.options(StoreUrl::Sqlite(dir.path().join("kagzi.db")))
    };
    let (told, ready) = oneshot::channel();
    let stop = CancellationToken::new();
    let serving = tokio::spawn(Server::serve(options, |address| told.send(address).unwrap(), stop.clone()));
    let address = ready.await.unwrap();
    let channel = Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
    let mut workflows = WorkflowServiceClient::new(channel.clone());
    let mut workers = WorkerServiceClient::new(channel);
    let run_id = completed_run(&mut workflows, &mut workers).await;

    let (asks, incoming) = mpsc::channel(1);
    let replies = workflows.converse(ReceiverStream::new(incoming)).await.unwrap().into_inner();
    let before = resident_bytes();
    let ask = |seq| {
        let wait = v1::WaitWorkflowRunRequest { run_id: run_id.clone(), ..Default::default() };
        v1::Ask { seq, body: Some(Asked::Wait(wait)) }
    };
    asks.send(v1::ConverseRequest { asks: (0..WAITS).map(ask).collect() }).await.unwrap();

    // Nothing is waited for here: the server has this long to hold too much.
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let growth = resident_bytes().saturating_sub(before);
        assert!(growth < GROWTH_BYTES_MAX, "{growth} bytes are held for a client that does not read");
    }

    // When it reads at last, everything is there.
    let mut replies = replies;
    let mut count = 0;
    while count < WAITS {
        let message = replies.message().await.unwrap().expect("the conversation goes on");
        count += message.replies.len() as u64;
    }
    drop(asks);
    stop.cancel();
    serving.await.unwrap().unwrap();
}

async fn completed_run(
    workflows: &mut WorkflowServiceClient<tonic::transport::Channel>,
    workers: &mut WorkerServiceClient<tonic::transport::Channel>,
) -> String {
    let register = v1::RegisterWorkerRequest {
        task_queue: "orders".into(),
        workflow_types: vec!["order".into()],
        ..Default::default()
    };
    let worker_id = workers.register_worker(register).await.unwrap().into_inner().worker_id;
    let start = v1::StartWorkflowRequest {
        workflow_type: "order".into(),
        task_queue: "orders".into(),
        ..Default::default()
    };
    let run_id = workflows.start_workflow(start).await.unwrap().into_inner().run_id;
    let poll = v1::PollActivityRequest {
        worker_id,
        supported_workflow_types: vec!["order".into()],
        ..Default::default()
    };
    let run = workers.poll_activity(poll).await.unwrap().into_inner();
    assert_eq!(run.run_id, run_id);
    let complete = v1::CompleteWorkflowRequest {
        run_id: run_id.clone(),
        lease_epoch: run.lease_epoch,
        output: vec![7; RESULT_BYTES].into(),
        ..Default::default()
    };
    workers.complete_workflow(complete).await.unwrap();
    run_id
}
