//! Payloads at the limit, above it, and far above it.

use bytes::Bytes;
use kagzi_faults::{Pace, Script, stage, start_request};
use kagzi_proto::v1::{self, Payload};
use tonic::Code;

const LIMIT: usize = 2 * 1024 * 1024;
const CONTENT_TYPE: &str = "application/x-noise";

/// Random bytes: certainly not UTF-8, and they do not compress.
fn noise(len: usize) -> Bytes {
    let bytes: Vec<u8> =
        std::iter::repeat_with(|| uuid::Uuid::new_v4().into_bytes()).flatten().take(len).collect();
    assert!(std::str::from_utf8(&bytes).is_err());
    bytes.into()
}

fn start(data: Bytes) -> v1::StartWorkflowRequest {
    let input = Some(Payload { data, content_type: CONTENT_TYPE.into() });
    v1::StartWorkflowRequest { input, ..start_request("by-hand", &Script::default()) }
}

#[tokio::test]
async fn a_payload_of_exactly_the_limit_comes_back_as_it_was() {
    let stage = stage!(Pace::Steady);
    let worker = stage.hand_worker("by-hand").await;
    let (input, result, output) = (noise(LIMIT), noise(LIMIT), noise(LIMIT));

    let run = stage.start_with(start(input.clone())).await.unwrap().run_id;
    let held = worker.poll(5_000).await.expect("a run");
    let complete_step = v1::CompleteStepRequest {
        run_id: run.clone(),
        step_id: "charge".into(),
        output: result.clone(),
        lease_epoch: held.lease_epoch,
        content_type: CONTENT_TYPE.into(),
        ..Default::default()
    };
    worker.rpc.clone().complete_step(complete_step).await.unwrap();
    stage.kill_server().await;
    stage.restart_server().await;
    let begin = v1::BeginStepRequest {
        run_id: run.clone(),
        step_id: "charge".into(),
        lease_epoch: held.lease_epoch,
        ..Default::default()
    };
    let recorded = kagzi_faults::eventually("the server answers", async || {
        worker.rpc.clone().begin_step(begin.clone()).await.ok()
    })
    .await
    .into_inner();
    let complete = v1::CompleteWorkflowRequest {
        run_id: run.clone(),
        output: output.clone(),
        lease_epoch: held.lease_epoch,
        content_type: CONTENT_TYPE.into(),
        ..Default::default()
    };
    worker.rpc.clone().complete_workflow(complete).await.unwrap();
    let seen = stage.run(&run).await;

    let noise = |data: Bytes| Some(Payload { data, content_type: CONTENT_TYPE.into() });
    assert!(held.workflow_input == input && held.input_content_type == CONTENT_TYPE);
    assert!(recorded.cached_result == result && recorded.cached_content_type == CONTENT_TYPE);
    assert!(seen.input == noise(input) && seen.output == noise(output));
    stage.close().await;
}

#[tokio::test]
async fn one_byte_more_is_refused_by_field_size_and_limit() {
    let stage = stage!(Pace::Steady);
    let worker = stage.hand_worker("by-hand").await;
    let run = stage.start_with(start(Bytes::new())).await.unwrap().run_id;
    let held = worker.poll(5_000).await.expect("a run");
    let output = noise(LIMIT + 1);
    let complete_step = v1::CompleteStepRequest {
        run_id: run.clone(),
        step_id: "charge".into(),
        output: output.clone(),
        lease_epoch: held.lease_epoch,
        ..Default::default()
    };
    let complete = v1::CompleteWorkflowRequest {
        run_id: run.clone(),
        output: output.clone(),
        lease_epoch: held.lease_epoch,
        ..Default::default()
    };

    let refusals = [
        ("input", stage.start_with(start(output)).await.unwrap_err()),
        ("output", worker.rpc.clone().complete_step(complete_step).await.unwrap_err()),
        ("output", worker.rpc.clone().complete_workflow(complete).await.unwrap_err()),
    ];

    for (field, refusal) in refusals {
        assert_eq!(refusal.code(), Code::InvalidArgument, "{refusal}");
        let expected = format!("{field} is {} bytes, the limit is {LIMIT} bytes", LIMIT + 1);
        assert!(refusal.message().contains(&expected), "{refusal}");
    }
    assert_eq!(stage.kinds(&run).await, ["run_started", "run_claimed"], "nothing was written");
    worker.complete(&held, "done").await.unwrap();
    assert_eq!(stage.close().await.runs, 1);
}

#[tokio::test]
async fn a_payload_of_64_mib_is_cut_off_before_it_is_buffered() {
    let stage = stage!(Pace::Steady);
    let run = stage.start_with(start(noise(100))).await.unwrap().run_id;
    let peak_before = stage.server_memory_kib("VmHWM");

    for _ in 0..3 {
        let refusal = stage.start_with(start(Bytes::from(vec![7; 64 << 20]))).await.unwrap_err();
        // The transport refuses by the announced length, so it knows neither field nor payload limit.
        assert_eq!(refusal.code(), Code::OutOfRange, "{refusal}");
        assert!(refusal.message().contains("too large"), "{refusal}");
    }
    let grown = stage.server_memory_kib("VmHWM") - peak_before;

    assert!(grown < 24 * 1024, "the server's memory grew by {grown} KiB");
    assert_eq!(stage.run(&run).await.input.unwrap().data.len(), 100, "it still works");
    assert_eq!(stage.close().await.runs, 1);
}
