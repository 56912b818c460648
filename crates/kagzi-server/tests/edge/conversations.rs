//! Conversations whose client asks for everything at once.

use std::time::Duration;

use kagzi_proto::v1::{self, ask::Body as Asked, reply::Body as Said};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::stage::Stage;

async fn converse(stage: &Stage) -> (mpsc::Sender<v1::ConverseRequest>, Streaming<v1::ConverseResponse>) {
    let (asks, incoming) = mpsc::channel(1);
    let replies = stage.workflows().await.converse(ReceiverStream::new(incoming)).await.unwrap();
    (asks, replies.into_inner())
}

async fn replies(incoming: &mut Streaming<v1::ConverseResponse>, count: usize) -> Vec<v1::Reply> {
    let mut replies = Vec::new();
    while replies.len() < count {
        replies.extend(incoming.message().await.unwrap().expect("the conversation goes on").replies);
    }
    replies
}

fn start() -> v1::StartWorkflowRequest {
    v1::StartWorkflowRequest {
        workflow_type: "order".into(),
        task_queue: "orders".into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn the_starts_of_one_message_are_committed_in_portions() {
    let stage = Stage::open().await;
    let (asks, mut incoming) = converse(&stage).await;
    let ask = |seq| v1::Ask { seq, body: Some(Asked::Start(Box::new(start()))) };

    asks.send(v1::ConverseRequest { asks: (0..5_000).map(ask).collect() }).await.unwrap();
    let replies = replies(&mut incoming, 5_000).await;

    assert!(replies.iter().all(|reply| matches!(reply.body, Some(Said::Started(_)))));
    let page = stage.metrics().await;
    let bucket = |bound: &str| {
        let begin = format!("kagzi_commands_per_commit_bucket{{le=\"{bound}\"}} ");
        page.lines().find_map(|line| line.strip_prefix(&*begin)).unwrap().to_owned()
    };
    assert_eq!(bucket("1024"), bucket("+Inf"), "no commit had more than a thousand starts");
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waits_beyond_the_bound_begin_when_others_are_over() {
    const BOUND: u64 = 16 * 1024;
    let stage = Stage::open().await;
    let mut workflows = stage.workflows().await;
    let run_id = workflows.start_workflow(start()).await.unwrap().into_inner().run_id;
    let (asks, mut incoming) = converse(&stage).await;
    let wait = |seq| {
        // All wait long, but the one beyond the bound.
        let timeout_ms = if seq == BOUND { 1 } else { 60_000 };
        let wait = v1::WaitWorkflowRunRequest { run_id: run_id.clone(), timeout_ms, ..Default::default() };
        v1::Ask { seq, body: Some(Asked::Wait(wait)) }
    };

    asks.send(v1::ConverseRequest { asks: (0..=BOUND).map(wait).collect() }).await.unwrap();
    let early = tokio::time::timeout(Duration::from_secs(4), incoming.message()).await;
    assert!(early.is_err(), "the last one was taken on beside all others: {early:?}");
    let cancel = v1::CancelWorkflowRunRequest { run_id: run_id.clone(), ..Default::default() };
    workflows.cancel_workflow_run(cancel).await.unwrap();
    let replies = replies(&mut incoming, BOUND as usize + 1).await;

    assert!(replies.iter().all(|reply| matches!(&reply.body, Some(Said::Waited(waited)) if waited.finished)));
    stage.close().await;
}

#[tokio::test]
async fn the_signals_of_one_message_share_a_commit_in_their_order_and_each_is_answered_on_its_own() {
    let stage = Stage::open().await;
    let mut workflows = stage.workflows().await;
    let run_id = workflows.start_workflow(start()).await.unwrap().into_inner().run_id;
    let (asks, mut incoming) = converse(&stage).await;
    let ask = |seq: u64| {
        let named = if seq == 7 { uuid::Uuid::nil().to_string() } else { run_id.clone() };
        let signal = v1::SignalWorkflowRunRequest {
            run: Some(v1::RunRef { r#ref: Some(v1::run_ref::Ref::RunId(named)) }),
            channel: "item".into(),
            signal_id: format!("signal-{seq:03}"),
            ..Default::default()
        };
        v1::Ask { seq, body: Some(Asked::Signal(Box::new(signal))) }
    };
    let commits = |page: &str| -> u64 {
        let count = "kagzi_commands_per_commit_count ";
        page.lines().find_map(|line| line.strip_prefix(count)).unwrap().parse().unwrap()
    };
    let before = commits(&stage.metrics().await);

    asks.send(v1::ConverseRequest { asks: (0..100).map(ask).collect() }).await.unwrap();
    let replies = replies(&mut incoming, 100).await;

    for reply in &replies {
        match &reply.body {
            Some(Said::Signalled(told)) => assert_eq!(told.signal_id, format!("signal-{:03}", reply.seq)),
            Some(Said::Refused(_)) => assert_eq!(reply.seq, 7),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(commits(&stage.metrics().await) - before, 1);
    let request = v1::ListRunEventsRequest { run_id: run_id.clone(), page_size: 200, ..Default::default() };
    let events = workflows.list_run_events(request).await.unwrap().into_inner().events;
    let told: Vec<String> =
        events.iter().filter(|event| event.kind() == v1::EventKind::SignalReceived).map(id_of).collect();
    assert!(told.len() == 99 && told.is_sorted(), "{told:?}");
    stage.close().await;
}

fn id_of(event: &v1::RunEvent) -> String {
    let detail: serde_json::Value = serde_json::from_str(&event.detail_json).unwrap();
    detail["id"].as_str().unwrap().to_owned()
}
