//! A caller's trace reaches the worker, whatever version of the standard the caller speaks.

use kagzi_proto::v1;
use tonic::Request;

use crate::stage::Stage;

#[tokio::test]
async fn a_later_version_of_the_trace_context_and_the_vendors_state_reach_the_worker() {
    let stage =
        Stage::with(&[("worker.heartbeat_interval", "500ms"), ("worker.stale_after", "1500ms")]).await;
    let mut workers = stage.workers().await;
    let register = v1::RegisterWorkerRequest {
        task_queue: "orders".into(),
        workflow_types: vec!["order".into()],
        ..Default::default()
    };
    let registered = workers.register_worker(register).await.unwrap().into_inner();
    assert_eq!((registered.heartbeat_interval_ms, registered.stale_after_ms), (500, 1_500));
    let mut start = Request::new(v1::StartWorkflowRequest {
        workflow_type: "order".into(),
        task_queue: "orders".into(),
        ..Default::default()
    });
    let later = "42-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-09-more";
    start.metadata_mut().insert("traceparent", later.parse().unwrap());
    start.metadata_mut().insert("tracestate", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE".parse().unwrap());
    stage.workflows().await.start_workflow(start).await.unwrap();

    let poll = v1::PollActivityRequest {
        worker_id: registered.worker_id,
        supported_workflow_types: vec!["order".into()],
        ..Default::default()
    };
    let run = workers.poll_activity(poll).await.unwrap().into_inner();

    assert_eq!(run.traceparent, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    assert_eq!(run.tracestate, "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
    stage.close().await;
}
