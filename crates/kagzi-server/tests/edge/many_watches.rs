//! Watches as strangers use them: readers that stall, a thousand at once, and readers that go away.

use std::time::Duration;

use kagzi_proto::{
    Reason,
    v1::{self, workflow_service_client::WorkflowServiceClient},
};
use tokio::time::timeout;
use tonic::Streaming;

use crate::stage::Stage;

const PATIENCE: Duration = Duration::from_secs(60);

fn start(id: usize, bytes: usize) -> v1::StartWorkflowRequest {
    v1::StartWorkflowRequest {
        business_id: format!("order-{id}"),
        workflow_type: "order".into(),
        task_queue: "orders".into(),
        input: Some(v1::Payload { data: vec![b'7'; bytes].into(), ..Default::default() }),
        ..Default::default()
    }
}

fn whole(run: &str) -> v1::WatchRunRequest {
    let run = Some(v1::RunRef { r#ref: Some(v1::run_ref::Ref::RunId(run.into())) });
    v1::WatchRunRequest { run, ..Default::default() }
}

/// How much memory this process, which is the server too, has in use.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[tokio::test]
async fn a_reader_that_stalls_holds_little_memory_and_nobody_up() {
    const READERS: usize = 50;
    let stage = Stage::open().await;
    let mut workflows = stage.workflows().await;
    let mut runs = Vec::new();
    for id in 0..8 {
        runs.push(workflows.start_workflow(start(id, 1_000_000)).await.unwrap().into_inner().run_id);
    }
    let before = resident_bytes();

    // Each would like to send a megabyte and more, and nobody reads a byte of it.
    let mut stalled = Vec::new();
    for at in 0..READERS {
        let mut client = WorkflowServiceClient::new(stage.channel().await);
        stalled.push(client.watch_run(whole(&runs[at % runs.len()])).await.unwrap().into_inner());
        let all = v1::WatchRunsRequest::default();
        drop(client.watch_runs(all).await.unwrap());
    }
    // Everybody else goes on: starts, ends and reads.
    for id in 100..200 {
        workflows.start_workflow(start(id, 10)).await.unwrap();
        let run = Some(v1::RunRef { r#ref: Some(v1::run_ref::Ref::BusinessId(format!("order-{id}"))) });
        let cancel = v1::CancelWorkflowRunRequest { run, ..Default::default() };
        timeout(PATIENCE, workflows.cancel_workflow_run(cancel)).await.expect("nobody waits").unwrap();
    }

    let grown = resident_bytes().saturating_sub(before);
    // A message of a megabyte at most is made for each, and windows of another are filled.
    assert!(grown < READERS as u64 * 6 * 1024 * 1024, "{grown} bytes for {READERS} stalled readers");
    // Whoever reads again is told everything.
    let first = timeout(PATIENCE, stalled[0].message()).await.unwrap().unwrap().unwrap();
    assert_eq!(first.events[0].sequence, 1);
    stage.close().await;
}

#[tokio::test]
async fn a_thousand_watch_at_once_and_the_next_is_refused_until_one_goes() {
    let stage = Stage::open().await;
    let mut workflows = stage.workflows().await;
    let run = workflows.start_workflow(start(1, 10)).await.unwrap().into_inner().run_id;
    let mut channels = Vec::new();
    for _ in 0..4 {
        channels.push(stage.channel().await);
    }
    let mut watching: Vec<Streaming<v1::WatchRunResponse>> = Vec::new();
    for at in 0..1_000 {
        let mut client = WorkflowServiceClient::new(channels[at % channels.len()].clone());
        watching.push(client.watch_run(whole(&run)).await.unwrap().into_inner());
    }
    let mut client = WorkflowServiceClient::new(stage.channel().await);
    let refused = client.watch_run(whole(&run)).await.unwrap_err();
    assert_eq!(Reason::of(&refused), Some(Reason::QuotaExceeded), "{refused}");

    let cancel = v1::CancelWorkflowRunRequest { run_id: run.clone(), ..Default::default() };
    workflows.cancel_workflow_run(cancel).await.unwrap();

    for stream in &mut watching {
        let mut sequences = Vec::new();
        while let Some(told) = timeout(PATIENCE, stream.message()).await.expect("it is told").unwrap() {
            sequences.extend(told.events.iter().map(|event| event.sequence));
        }
        assert_eq!(sequences, [1, 2]);
    }
    // Those that have ended make room.
    client.watch_run(whole(&run)).await.unwrap();
    stage.close().await;
}

#[tokio::test]
async fn a_reader_that_goes_away_leaves_nothing_behind() {
    let stage = Stage::open().await;
    let mut workflows = stage.workflows().await;
    let run = workflows.start_workflow(start(1, 10)).await.unwrap().into_inner().run_id;
    let streams = "kagzi_rpc_open{kind=\"stream\"}";
    let connections = stage.metric("kagzi_connections").await;

    let channel = stage.channel().await;
    let mut watching = Vec::new();
    for _ in 0..900 {
        watching.push(WorkflowServiceClient::new(channel.clone()).watch_run(whole(&run)).await.unwrap());
    }
    assert!(stage.metric(streams).await >= 900.0);
    // Half of them close their stream, the others vanish with their connection.
    watching.truncate(450);
    drop((watching, channel));

    let gone = async {
        while stage.metric(streams).await > 0.0 || stage.metric("kagzi_connections").await > connections {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, gone).await.expect("every watch is forgotten");
    // All the room is free again.
    let channel = stage.channel().await;
    for _ in 0..1_000 {
        let mut client = WorkflowServiceClient::new(channel.clone());
        watching_again(&mut client, &run).await;
    }
    stage.close().await;
}

async fn watching_again(client: &mut WorkflowServiceClient<tonic::transport::Channel>, run: &str) {
    let mut stream = client.watch_run(whole(run)).await.unwrap().into_inner();
    timeout(PATIENCE, stream.message()).await.unwrap().unwrap();
}
