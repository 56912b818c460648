//! One run per business id.

use std::collections::HashSet;

use futures_util::future;
use kagzi_faults::{Evidence, Pace, Script, stage, start_request};
use tonic::Code;

#[tokio::test]
async fn a_hundred_concurrent_starts_with_one_id_make_one_run() {
    let stage = stage!(Pace::Steady);
    let _worker = stage.worker(&[]).await;
    let mut request = start_request("script", &Script::steps(&["a"]));
    request.business_id = "order-42".into();

    let starts = future::join_all((0..100).map(|_| stage.start_with(request.clone()))).await;
    let answers: Vec<_> = starts.into_iter().map(|answer| answer.expect("each is answered")).collect();
    let ids: HashSet<_> = answers.iter().map(|answer| &answer.run_id).collect();
    stage.completed(&answers[0].run_id).await;

    assert_eq!(ids.len(), 1);
    assert_eq!(answers.iter().filter(|answer| !answer.already_exists).count(), 1);
    assert_eq!(stage.close().await, Evidence { runs: 1, completed: 1, results: 1, executions: 1 });
}

#[tokio::test]
async fn the_same_id_with_another_request_is_a_conflict_that_says_what_differs() {
    let stage = stage!(Pace::Steady);
    let mut request = start_request("script", &Script::steps(&["a"]));
    request.business_id = "order-42".into();
    let first = stage.start_with(request.clone()).await.unwrap();
    let mut other_input = request.clone();
    other_input.input = start_request("script", &Script::steps(&["b"])).input;
    let other_type = kagzi_proto::v1::StartWorkflowRequest { workflow_type: "x".into(), ..request.clone() };
    let other_queue = kagzi_proto::v1::StartWorkflowRequest { task_queue: "x".into(), ..request.clone() };

    for (request, what) in
        [(other_input, "input"), (other_type, "workflow type"), (other_queue, "task queue")]
    {
        let refusal = stage.start_with(request).await.unwrap_err();

        assert_eq!(refusal.code(), Code::AlreadyExists);
        assert!(refusal.message().contains(&format!("another {what}")), "{refusal}");
        assert!(refusal.message().contains(&first.run_id), "{refusal}");
    }
    // The same after a restart, when nothing is in memory.
    stage.kill_server().await;
    stage.restart_server().await;
    let again =
        kagzi_faults::eventually("the server answers", async || stage.start_with(request.clone()).await.ok())
            .await;
    assert!(again.already_exists && again.run_id == first.run_id);
    assert_eq!(stage.close().await.runs, 1);
}
