//! Refusals have a reason for programs, on calls and on streams alike.

use std::{fs, path::Path};

use kagzi_proto::{Reason, refusal, v1};
use tokio_stream::StreamExt;
use tonic::{Request, Status};

use crate::stage::Stage;

fn start(task_queue: &str) -> v1::StartWorkflowRequest {
    v1::StartWorkflowRequest {
        workflow_type: "order".into(),
        task_queue: task_queue.into(),
        ..Default::default()
    }
}

fn assert_names_the_queue(refused: &Status) {
    assert_eq!(Reason::of(refused), Some(Reason::FieldInvalid), "{refused}");
    let fields = refusal::field_violations(refused);
    assert_eq!(fields.len(), 1, "{refused}");
    assert_eq!(fields[0].field, "task_queue");
    assert!(refused.message().ends_with(&fields[0].description), "{refused}");
}

#[tokio::test]
async fn a_field_that_is_wrong_is_named_alike_by_a_call_in_a_batch_and_on_a_stream() {
    let stage = Stage::open().await;
    let mut workflows = stage.workflows().await;

    let call = workflows.start_workflow(start("")).await.unwrap_err();
    let requests = vec![start(""), start("orders")];
    let batch = workflows.start_workflows(v1::StartWorkflowsRequest { requests }).await.unwrap();
    let ask = v1::Ask { seq: 7, body: Some(v1::ask::Body::Start(Box::new(start("")))) };
    let asks = tokio_stream::iter([v1::ConverseRequest { asks: vec![ask] }]).chain(tokio_stream::pending());
    let mut replies = workflows.converse(Request::new(asks)).await.unwrap().into_inner();
    let reply = replies.next().await.unwrap().unwrap().replies.remove(0);

    assert_names_the_queue(&call);
    let [first, second] = &batch.into_inner().results[..] else { panic!("two results") };
    assert_names_the_queue(&refusal::from_rpc(first.refused.clone().unwrap()));
    assert_eq!(second.refused, None);
    let Some(v1::reply::Body::Refused(refused)) = reply.body else { panic!("{reply:?}") };
    assert_names_the_queue(&refusal::from_rpc(refused));
    stage.close().await;
}

#[tokio::test]
async fn a_run_that_is_not_there_and_one_that_has_ended_are_told_apart() {
    let stage = Stage::open().await;
    let mut workflows = stage.workflows().await;
    let cancel =
        |run_id: &str| v1::TerminateWorkflowRunRequest { run_id: run_id.into(), ..Default::default() };
    let run_id = workflows.start_workflow(start("orders")).await.unwrap().into_inner().run_id;
    let end = v1::CancelWorkflowRunRequest { run_id: run_id.clone(), ..Default::default() };
    workflows.cancel_workflow_run(end).await.unwrap();

    let ended = workflows.terminate_workflow_run(cancel(&run_id)).await.unwrap_err();
    let missing = workflows.terminate_workflow_run(cancel(&uuid::Uuid::nil().to_string())).await.unwrap_err();

    assert_eq!(Reason::of(&ended), Some(Reason::RunEnded), "{ended}");
    let about = refusal::error_info(&ended).unwrap().metadata;
    assert_eq!((about["run_id"].as_str(), about["status"].as_str()), (run_id.as_str(), "CANCELLED"));
    assert_eq!(Reason::of(&missing), Some(Reason::RunNotFound), "{missing}");
    stage.close().await;
}

#[test]
fn no_status_is_made_without_a_reason() {
    let bare = [
        "invalid_argument",
        "not_found",
        "already_exists",
        "failed_precondition",
        "aborted",
        "out_of_range",
        "unavailable",
        "resource_exhausted",
        "permission_denied",
        "deadline_exceeded",
        "data_loss",
        "unknown",
        "new",
        "with_metadata",
    ]
    .map(|name| format!("Status::{name}("));
    let mut files = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut seen = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        seen += 1;
        let text = fs::read_to_string(&path).unwrap();
        // What tests make is nobody's answer.
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        for bare in &bare {
            assert!(!product.contains(bare.as_str()), "{} says {bare}..): give it a Reason", path.display());
        }
    }
    assert!(seen > 50, "only {seen} files were read");
}
