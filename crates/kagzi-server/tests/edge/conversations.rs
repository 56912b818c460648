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
