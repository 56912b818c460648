//! Watches tell what happens while it happens, to readers of any speed.

use std::time::Duration;

use kagzi_proto::{Reason, v1};
use tokio::time::timeout;
use tonic::Streaming;

use crate::stage::Stage;

const PATIENCE: Duration = Duration::from_secs(30);

fn start(id: &str) -> v1::StartWorkflowRequest {
    v1::StartWorkflowRequest {
        business_id: id.into(),
        workflow_type: "order".into(),
        task_queue: "orders".into(),
        ..Default::default()
    }
}

fn by_business_id(id: &str) -> Option<v1::RunRef> {
    Some(v1::RunRef { r#ref: Some(v1::run_ref::Ref::BusinessId(id.into())) })
}

async fn next<T>(stream: &mut Streaming<T>) -> Option<T> {
    timeout(PATIENCE, stream.message()).await.expect("it is told in time").unwrap()
}

#[tokio::test]
async fn a_history_is_told_as_it_grows_from_any_place_on_and_ends_with_the_run() {
    let stage = Stage::open().await;
    let mut workflows = stage.workflows().await;
    workflows.start_workflow(start("order-1")).await.unwrap();
    let watch = v1::WatchRunRequest { run: by_business_id("order-1"), ..Default::default() };
    let mut told = workflows.watch_run(watch.clone()).await.unwrap().into_inner();

    let first = next(&mut told).await.unwrap().events;
    let cancel = v1::CancelWorkflowRunRequest { run: by_business_id("order-1"), ..Default::default() };
    workflows.cancel_workflow_run(cancel).await.unwrap();
    let second = next(&mut told).await.unwrap().events;
    let end = next(&mut told).await;
    let resumed = v1::WatchRunRequest { after_sequence: 1, ..watch };
    let mut resumed = workflows.watch_run(resumed).await.unwrap().into_inner();

    assert_eq!((first.len(), first[0].sequence, first[0].kind()), (1, 1, v1::EventKind::RunStarted));
    assert_eq!((second.len(), second[0].sequence), (1, 2));
    let Some(v1::EventDetail { kind: Some(v1::event_detail::Kind::RunCancelled(_)) }) = &second[0].detail
    else {
        panic!("{second:?}")
    };
    assert_eq!(end, None);
    assert_eq!(next(&mut resumed).await.unwrap().events, second);
    assert_eq!(next(&mut resumed).await, None);
    stage.close().await;
}

#[tokio::test]
async fn a_run_that_changed_while_nobody_read_is_told_once() {
    let stage = Stage::open().await;
    let mut workflows = stage.workflows().await;
    let filter = Some(v1::ListWorkflowRunsRequest { workflow_type: "order".into(), ..Default::default() });
    let mut told = workflows.watch_runs(v1::WatchRunsRequest { filter }).await.unwrap().into_inner();
    assert_eq!(next(&mut told).await.unwrap().workflow_runs, []);

    workflows.start_workflow(start("order-1")).await.unwrap();
    let seen = next(&mut told).await.unwrap().workflow_runs;
    assert_eq!((seen.len(), seen[0].status()), (1, v1::WorkflowStatus::Pending));
    let cancel = v1::CancelWorkflowRunRequest { run: by_business_id("order-1"), ..Default::default() };
    workflows.cancel_workflow_run(cancel).await.unwrap();

    let seen = next(&mut told).await.unwrap().workflow_runs;
    assert_eq!((seen.len(), seen[0].status()), (1, v1::WorkflowStatus::Cancelled));
    stage.close().await;
}

#[tokio::test]
async fn a_queue_is_told_of_when_its_counts_change() {
    let stage = Stage::open().await;
    let (mut workflows, mut admin) = (stage.workflows().await, stage.admin().await);
    let mut told = admin.watch_queues(v1::WatchQueuesRequest::default()).await.unwrap().into_inner();
    assert_eq!(next(&mut told).await.unwrap().queues, []);

    workflows.start_workflow(start("order-1")).await.unwrap();
    let seen = next(&mut told).await.unwrap().queues;
    assert_eq!((seen.len(), seen[0].task_queue.as_str(), seen[0].ready), (1, "orders", 1));
    let cancel = v1::CancelWorkflowRunRequest { run: by_business_id("order-1"), ..Default::default() };
    workflows.cancel_workflow_run(cancel).await.unwrap();

    assert_eq!(next(&mut told).await.unwrap().gone, ["orders"]);
    stage.close().await;
}

#[tokio::test]
async fn what_is_not_there_cannot_be_watched_and_watches_end_with_the_server() {
    let stage = Stage::open().await;
    let mut workflows = stage.workflows().await;
    let nothing = v1::WatchRunRequest { run: by_business_id("nothing"), ..Default::default() };
    let refused = workflows.watch_run(nothing).await.unwrap_err();
    let mut told = workflows.watch_runs(v1::WatchRunsRequest::default()).await.unwrap().into_inner();
    next(&mut told).await;

    stage.close().await;

    assert_eq!(Reason::of(&refused), Some(Reason::RunNotFound), "{refused}");
    let end = timeout(PATIENCE, told.message()).await.expect("it ends").unwrap_err();
    assert_eq!(Reason::of(&end), Some(Reason::ServerStopping), "{end}");
}
