//! A worker of one namespace is nobody in another.

use kagzi_proto::v1;
use tonic::Code;

use crate::stage::Stage;

#[tokio::test]
async fn nobody_polls_for_a_worker_of_another_namespace() {
    let stage = Stage::open().await;
    let mut workers = stage.workers().await;
    let registration = v1::RegisterWorkerRequest {
        namespace_id: "victim".into(),
        task_queue: "orders".into(),
        workflow_types: vec!["order".into()],
        ..Default::default()
    };
    let worker_id = workers.register_worker(registration).await.unwrap().into_inner().worker_id;
    let start = v1::StartWorkflowRequest {
        namespace_id: "victim".into(),
        workflow_type: "order".into(),
        task_queue: "orders".into(),
        ..Default::default()
    };
    let run_id = stage.workflows().await.start_workflow(start).await.unwrap().into_inner().run_id;

    for task_queue in ["", "orders"] {
        let poll = v1::PollActivityRequest {
            namespace_id: "thief".into(),
            worker_id: worker_id.clone(),
            task_queue: task_queue.into(),
            supported_workflow_types: vec!["order".into()],
            timeout_ms: 100,
        };
        let refused = workers.poll_activity(poll).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    }

    let get = v1::GetWorkflowRunRequest { namespace_id: "victim".into(), run_id, ..Default::default() };
    let run = stage.workflows().await.get_workflow_run(get).await.unwrap().into_inner().workflow_run.unwrap();
    assert_eq!(run.dispatch_count, 0, "the run was not leased");
    stage.close().await;
}
