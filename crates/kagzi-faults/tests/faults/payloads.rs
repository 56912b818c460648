//! Payloads at the limit, above it, and far above it.

use bytes::Bytes;
use kagzi_faults::{HandWorker, Pace, QUEUE, Script, Stage, stage, start_request};
use kagzi_proto::{
    Reason, refusal,
    v1::{
        self, Payload, report::Body, server_message::Message as Said, worker_message::Message,
        workflow_service_client::WorkflowServiceClient,
    },
};
use tokio::sync::mpsc;
use tonic::{Code, Status, Streaming, transport::Channel};

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

/// The refusal says the same everywhere: which field, the limit, the size, and a code for programs.
fn assert_names(refusal: &Status, field: &str, limit: usize, size: usize) {
    assert_eq!(refusal.code(), Code::InvalidArgument, "{refusal}");
    let expected = format!("{field} exceeds maximum size of {limit} bytes ({size} bytes)");
    assert!(refusal.message().contains(&expected), "{refusal}");
    assert_eq!(Reason::of(refusal), Some(Reason::PayloadTooLarge), "{refusal}");
}

#[tokio::test]
async fn one_byte_more_is_refused_by_field_size_and_limit_at_every_entrance() {
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
    let progress = v1::ReportStepProgressRequest {
        run_id: run.clone(),
        step_id: "charge".into(),
        lease_epoch: held.lease_epoch,
        progress: Some(Payload { data: output.clone(), content_type: CONTENT_TYPE.into() }),
        ..Default::default()
    };
    let complete = v1::CompleteWorkflowRequest {
        run_id: run.clone(),
        output: output.clone(),
        lease_epoch: held.lease_epoch,
        ..Default::default()
    };
    let many = v1::StartWorkflowsRequest { requests: vec![start(output.clone()), start(Bytes::new())] };

    let refusals = [
        ("input", stage.start_with(start(output)).await.unwrap_err()),
        ("output", worker.rpc.clone().complete_step(complete_step).await.unwrap_err()),
        ("progress", worker.rpc.clone().report_step_progress(progress).await.unwrap_err()),
        ("output", worker.rpc.clone().complete_workflow(complete).await.unwrap_err()),
    ];
    let each = stage.workflows().start_workflows(many).await.unwrap().into_inner().results;

    for (field, refusal) in refusals {
        assert_names(&refusal, field, LIMIT, LIMIT + 1);
    }
    let refused = refusal::from_rpc(each[0].refused.clone().unwrap());
    assert_eq!(Reason::of(&refused), Some(Reason::PayloadTooLarge), "{refused}");
    assert_eq!(each[1].refused, None, "its neighbour is started");
    assert_eq!(stage.kinds(&run).await, ["run_started", "run_claimed"], "nothing was written");
    worker.complete(&held, "done").await.unwrap();
    assert_eq!(stage.close().await.runs, 2);
}

#[tokio::test]
async fn a_result_over_the_limit_is_refused_on_the_stream_by_its_code_and_the_stream_lives_on() {
    let stage = stage!(Pace::Steady);
    let run = stage.start_with(start(Bytes::new())).await.unwrap().run_id;
    let (up, mut down) = hand_stream(&stage).await;
    let lease = assigned(&mut down).await;
    let recorded = |data| {
        Body::StepRecorded(v1::StepRecorded {
            step: Some(v1::StepRef { path: "charge".into(), position: 0 }),
            result: Some(Payload { data, content_type: CONTENT_TYPE.into() }),
            attempt: 1,
            elapsed_ms: 1,
        })
    };

    report(&up, 1, &lease, recorded(noise(LIMIT + 1))).await;
    let refused = answer(&mut down, 1).await;
    let code = refusal::error_info(&refused).unwrap().reason;
    let failure = v1::Failure { code, non_retryable: true, ..Default::default() };
    let step = Some(v1::StepRef { path: "charge".into(), position: 0 });
    let failed = v1::StepFailed { step, failure: Some(failure), attempt: 1, ..Default::default() };
    report(&up, 2, &lease, Body::StepFailed(Box::new(failed))).await;
    let output = Some(Payload { data: noise(LIMIT), content_type: CONTENT_TYPE.into() });
    report(&up, 3, &lease, Body::RunCompleted(v1::RunCompleted { output, steps: Vec::new() })).await;

    assert_names(&refused, "result", LIMIT, LIMIT + 1);
    stage.completed(&run).await;
    assert!(stage.kinds(&run).await.contains(&"step_failed".to_owned()));
    assert_eq!(stage.close().await.completed, 1);
}

#[tokio::test]
async fn a_long_error_is_cut_and_never_refused() {
    let stage = stage!(Pace::Steady);
    let worker = stage.hand_worker("by-hand").await;
    let run = stage.start_with(start(Bytes::new())).await.unwrap().run_id;
    let held = worker.poll(5_000).await.expect("a run");
    let fail = v1::FailWorkflowRequest {
        run_id: run.clone(),
        error: "é".repeat(30_000),
        lease_epoch: held.lease_epoch,
        ..Default::default()
    };

    worker.rpc.clone().fail_workflow(fail).await.unwrap();

    let error = stage.run(&run).await.error.unwrap();
    assert_eq!((error.code.as_str(), error.message.len()), ("ERROR", 4096));
    assert_eq!(stage.close().await.runs, 1);
}

/// What a client of gRPC takes unless it is told otherwise.
const MESSAGE_BYTES: usize = 4 << 20;

fn small(workflows: WorkflowServiceClient<Channel>) -> WorkflowServiceClient<Channel> {
    workflows.max_decoding_message_size(MESSAGE_BYTES)
}

/// A held run with an input and six results, each at the limit.
async fn large_run(stage: &Stage, worker: &HandWorker) -> (v1::PollActivityResponse, Vec<Bytes>) {
    stage.start_with(start(noise(LIMIT))).await.unwrap();
    let held = worker.poll(5_000).await.expect("a run");
    let results: Vec<Bytes> = (0..6).map(|_| noise(LIMIT)).collect();
    for (position, output) in results.iter().enumerate() {
        let complete_step = v1::CompleteStepRequest {
            run_id: held.run_id.clone(),
            step_id: format!("step-{position}"),
            position: position as u32,
            output: output.clone(),
            lease_epoch: held.lease_epoch,
            ..Default::default()
        };
        worker.rpc.clone().complete_step(complete_step).await.unwrap();
    }
    (held, results)
}

#[tokio::test]
async fn a_journal_of_many_large_results_is_polled_in_answers_that_any_client_can_take() {
    let stage = stage!(Pace::Calm);
    let mut worker = stage.hand_worker("by-hand").await;
    worker.rpc = worker.rpc.max_decoding_message_size(MESSAGE_BYTES);
    let (held, results) = large_run(&stage, &worker).await;
    let release = v1::ReleaseRunRequest {
        run_id: held.run_id.clone(),
        lease_epoch: held.lease_epoch,
        ..Default::default()
    };
    worker.rpc.clone().release_run(release).await.unwrap();

    let again = worker.poll(5_000).await.expect("the run again");
    let read = async |epoch: u64, page_token: String| {
        let request = v1::ReadJournalRequest {
            run_id: again.run_id.clone(),
            lease_epoch: epoch,
            page_token,
            ..Default::default()
        };
        worker.rpc.clone().read_journal(request).await.map(tonic::Response::into_inner)
    };
    let mut journal = again.journal.clone();
    let mut token = again.journal_page_token.clone();
    assert!(journal.is_empty(), "beside an input of 2 MiB another 2 MiB have no room");
    while !token.is_empty() {
        let page = read(again.lease_epoch, token).await.unwrap();
        assert_eq!(page.journal.len(), 1, "two results at the limit are more than an answer holds");
        journal.extend(page.journal);
        token = page.next_page_token;
    }

    let seen: Vec<_> = journal.into_iter().map(|entry| entry.result.unwrap().data).collect();
    assert!(seen == results, "each result once, in order, byte for byte");
    let lost = read(held.lease_epoch, String::new()).await.unwrap_err();
    assert_eq!(lost.code(), Code::FailedPrecondition, "{lost}");
    let foreign = read(again.lease_epoch, "bmV4dDox".into()).await.unwrap_err();
    assert!(foreign.message().starts_with("page_token is \"bmV4dDox\""), "{foreign}");
    stage.close().await;
}

#[tokio::test]
async fn attempts_with_large_results_are_listed_both_ways_in_answers_that_any_client_can_take() {
    let stage = stage!(Pace::Calm);
    let worker = stage.hand_worker("by-hand").await;
    let (held, results) = large_run(&stage, &worker).await;
    let peak_before = stage.server_memory_kib("VmHWM");
    let page = async |page_token: String| {
        let request =
            v1::ListStepAttemptsRequest { run_id: held.run_id.clone(), page_token, ..Default::default() };
        small(stage.workflows()).list_step_attempts(request).await.unwrap().into_inner()
    };
    let outputs = |page: &v1::ListStepAttemptsResponse| -> Vec<Bytes> {
        page.step_attempts.iter().map(|attempt| attempt.output.clone().unwrap().data).collect()
    };

    let mut forward = Vec::new();
    let mut last = page(String::new()).await;
    loop {
        assert_eq!(last.total_count, 6);
        forward.extend(outputs(&last));
        if last.next_page_token.is_empty() {
            break;
        }
        last = page(last.next_page_token).await;
    }
    let mut back = outputs(&last);
    while !last.prev_page_token.is_empty() {
        last = page(last.prev_page_token).await;
        back.splice(0..0, outputs(&last));
    }
    let request = v1::GetStepAttemptRequest {
        run_id: held.run_id.clone(),
        step_id: "step-3".into(),
        ..Default::default()
    };
    let one = small(stage.workflows()).get_step_attempt(request).await.unwrap().into_inner();

    assert!(forward == results && back == results, "each result once, in order, byte for byte");
    assert!(one.step_attempt.unwrap().output.unwrap().data == results[3]);
    let grown = stage.server_memory_kib("VmHWM").saturating_sub(peak_before);
    assert!(grown < 48 * 1024, "the server's memory grew by {grown} KiB");
    stage.close().await;
}

#[tokio::test]
async fn lists_of_wide_rows_are_cut_to_what_any_client_can_take_and_none_is_lost() {
    let stage = stage!(Pace::Calm);
    let labels: std::collections::HashMap<String, String> =
        (0..64).map(|n| (format!("label-{n}"), "v".repeat(250))).collect();
    // Each of them is about 17 KiB on the wire.
    let wide = |n: u32| v1::StartWorkflowRequest {
        business_id: format!("wide-{n:03}"),
        labels: labels.clone(),
        ..start_request("by-hand", &Script::default())
    };
    for n in 0..300 {
        stage.start_with(wide(n)).await.unwrap();
    }

    let (mut seen, mut pages, mut page_token) = (Vec::new(), 0, String::new());
    loop {
        let request = v1::ListWorkflowRunsRequest { page_size: 1_000, page_token, ..Default::default() };
        let page = small(stage.workflows()).list_workflow_runs(request).await.unwrap().into_inner();
        seen.extend(page.workflow_runs.into_iter().map(|run| run.business_id));
        pages += 1;
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }

    assert!(pages > 1, "300 of them are more than an answer holds");
    assert_eq!(seen, (0..300).rev().map(|n| format!("wide-{n:03}")).collect::<Vec<_>>());
    stage.close().await;
}

#[tokio::test]
async fn a_history_with_many_large_payloads_comes_in_pages_that_a_client_can_take() {
    let stage = stage!(Pace::Calm);
    let worker = stage.hand_worker("by-hand").await;
    let (held, _) = large_run(&stage, &worker).await;
    let run = held.run_id;

    let mut sequences = Vec::new();
    loop {
        let after_sequence = sequences.last().copied().unwrap_or(0);
        let request = v1::ListRunEventsRequest { run_id: run.clone(), after_sequence, ..Default::default() };
        let page = small(stage.workflows()).list_run_events(request).await.unwrap().into_inner();
        sequences.extend(page.events.iter().map(|event| event.sequence));
        if page.next_page_token.is_empty() {
            break;
        }
    }

    assert_eq!(sequences, (1..=8).collect::<Vec<u64>>(), "each event once, in order");
    stage.close().await;
}

#[tokio::test]
async fn messages_of_64_mib_are_cut_off_before_they_are_buffered() {
    let stage = stage!(Pace::Steady);
    let run = stage.start_with(start(noise(100))).await.unwrap().run_id;
    let huge = Bytes::from(vec![7; 64 << 20]);
    let complete_step =
        v1::CompleteStepRequest { run_id: run.clone(), output: huge.clone(), ..Default::default() };
    let many = v1::StartWorkflowsRequest { requests: vec![start(huge.clone())] };
    let (up, mut down) = hand_stream(&stage).await;
    let lease = assigned(&mut down).await;
    let peak_before = stage.server_memory_kib("VmHWM");

    let refusals = [
        stage.start_with(start(huge.clone())).await.unwrap_err(),
        stage.workflows().start_workflows(many).await.unwrap_err(),
        stage.registry().complete_step(complete_step).await.unwrap_err(),
        {
            let output = Some(Payload { data: huge, content_type: String::new() });
            report(&up, 1, &lease, Body::RunCompleted(v1::RunCompleted { output, steps: Vec::new() })).await;
            loop {
                if let Err(refusal) = down.message().await {
                    break refusal;
                }
            }
        },
    ];
    let grown = stage.server_memory_kib("VmHWM") - peak_before;

    for refusal in &refusals {
        assert_eq!(refusal.code(), Code::InvalidArgument, "{refusal}");
        assert!(refusal.message().contains("the message exceeds maximum size of"), "{refusal}");
        assert!(refusal.message().contains("(671"), "the size is told: {refusal}");
    }
    assert!(grown < 24 * 1024, "the server's memory grew by {grown} KiB");
    assert_eq!(stage.run(&run).await.input.unwrap().data.len(), 100, "it still works");
    stage.close().await;
}

type Up = mpsc::Sender<v1::WorkerMessage>;
type Down = Streaming<v1::ServerMessage>;

/// A worker stream by hand: what a worker in another language could send.
async fn hand_stream(stage: &Stage) -> (Up, Down) {
    let (up, messages) = mpsc::channel(16);
    let registration = v1::RegisterWorkerRequest {
        task_queue: QUEUE.into(),
        workflow_types: vec!["by-hand".into()],
        ..Default::default()
    };
    let hello = v1::Hello { registration: Some(registration), ..Default::default() };
    up.send(v1::WorkerMessage { message: Some(Message::Hello(Box::new(hello))) }).await.unwrap();
    let messages = futures_util::stream::unfold(messages, |mut messages| async {
        messages.recv().await.map(|message| (message, messages))
    });
    (up, stage.registry().work(messages).await.unwrap().into_inner())
}

async fn assigned(down: &mut Down) -> v1::LeaseRef {
    loop {
        let message = down.message().await.unwrap().expect("the stream is open").message;
        if let Some(Said::Assign(assign)) = message {
            return assign.lease.expect("a run comes with its lease");
        }
    }
}

async fn report(up: &Up, seq: u64, lease: &v1::LeaseRef, body: Body) {
    let report = v1::Report { seq, lease: Some(lease.clone()), body: Some(body) };
    up.send(v1::WorkerMessage { message: Some(Message::Report(report)) }).await.unwrap();
}

async fn answer(down: &mut Down, seq: u64) -> Status {
    loop {
        let message = down.message().await.unwrap().expect("the stream is open").message;
        let Some(Said::Ack(ack)) = message else { continue };
        if let Some(answer) = ack.answers.into_iter().find(|answer| answer.seq == seq) {
            let Some(v1::answer::Body::Refused(refused)) = answer.body else { panic!("{answer:?}") };
            return refusal::from_rpc(refused);
        }
    }
}
