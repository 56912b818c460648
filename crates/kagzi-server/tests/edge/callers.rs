//! What people order is written down with who and why.

use kagzi_proto::v1::{self, event_detail::Kind};
use tonic::Request;

use crate::stage::Stage;

#[tokio::test]
async fn an_order_is_in_the_history_with_its_reason_and_its_caller() {
    let stage = Stage::open().await;
    let mut workflows = stage.workflows().await;
    let start = v1::StartWorkflowRequest {
        workflow_type: "order".into(),
        task_queue: "orders".into(),
        ..Default::default()
    };
    let run_id = workflows.start_workflow(start).await.unwrap().into_inner().run_id;

    let cancel = v1::CancelWorkflowRunRequest {
        run_id: run_id.clone(),
        reason: "sold out".into(),
        ..Default::default()
    };
    let mut cancel = Request::new(cancel);
    cancel.metadata_mut().insert("kagzi-caller", "ann@shop".parse().unwrap());
    workflows.cancel_workflow_run(cancel).await.unwrap();
    let retry = v1::RetryWorkflowRunRequest {
        run_id: run_id.clone(),
        reason: "new stock".into(),
        ..Default::default()
    };
    workflows.retry_workflow_run(retry).await.unwrap();

    let list = v1::ListRunEventsRequest { run_id, ..Default::default() };
    let events = workflows.list_run_events(list).await.unwrap().into_inner().events;
    let details: Vec<Kind> = events.into_iter().filter_map(|event| event.detail?.kind).collect();
    let told = format!("{details:?}");
    assert!(told.contains("ann@shop") && told.contains("sold out"), "{told}");
    assert!(told.contains("unknown") && told.contains("new stock"), "{told}");
    stage.close().await;
}
