//! Failure handlers of runs whose input is large and not even JSON.

use kagzi_faults::{Pace, Script, stage, start_request};
use kagzi_proto::v1::{Payload, WorkflowStatus};

/// The largest input that the server takes.
const BYTES: usize = 2 * 1024 * 1024;

#[tokio::test]
async fn a_handler_gets_the_largest_binary_input_of_the_failed_run() {
    let stage = stage!(Pace::Steady);
    let _worker = stage.worker(&["--handler", "handler"]).await;
    let mut request = start_request("script", &Script::default());
    let data: Vec<u8> = (0..BYTES).map(|n| (n % 251) as u8).collect();
    request.input = Some(Payload { data: data.into(), content_type: "application/octet-stream".into() });
    request.on_failure_workflow = "handler".into();

    let run = stage.start_with(request).await.unwrap().run_id;
    assert_eq!(stage.finished(&run).await.status(), WorkflowStatus::Failed);

    let handler = stage.handler_started(&run).await.expect("in the same commit");
    let output = stage.completed(&handler).await.output.expect("it has an output");
    let (failed, length): (String, usize) = serde_json::from_slice(&output.data).unwrap();
    assert_eq!((failed, length), (run, BYTES));
    stage.close().await;
}
