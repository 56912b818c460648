//! Steps of a worker in another language: begun, failed and timed out by the unary calls.

use kagzi_faults::{HandWorker, Pace, Script, Stage, eventually, stage, start_request};
use kagzi_proto::v1::{
    self, BeginStepRequest, BeginStepResponse, FailStepRequest, Finality, PollActivityResponse, RetryPolicy,
    StepStatus, TimeoutConfig, WaitReason,
};

const CHARGE: &str = "charge";

async fn begin(worker: &HandWorker, run: &PollActivityResponse, set: BeginStepRequest) -> BeginStepResponse {
    let request = BeginStepRequest {
        run_id: run.run_id.clone(),
        step_id: CHARGE.into(),
        lease_epoch: run.lease_epoch,
        ..set
    };
    worker.rpc.clone().begin_step(request).await.expect("a sound step").into_inner()
}

async fn fail(worker: &HandWorker, run: &PollActivityResponse, code: &str) -> v1::FailStepResponse {
    let request = FailStepRequest {
        run_id: run.run_id.clone(),
        step_id: CHARGE.into(),
        lease_epoch: run.lease_epoch,
        error: "no".into(),
        error_code: code.into(),
        ..Default::default()
    };
    worker.rpc.clone().fail_step(request).await.expect("a sound failure").into_inner()
}

async fn attempts(stage: &Stage, run: &str) -> Vec<v1::StepAttempt> {
    let request = v1::ListStepAttemptsRequest { run_id: run.into(), ..Default::default() };
    let answer = stage.workflows().list_step_attempts(request).await.expect("attempts can be listed");
    answer.into_inner().step_attempts
}

async fn held(stage: &Stage, request: v1::StartWorkflowRequest) -> (HandWorker, PollActivityResponse) {
    stage.start_with(request).await.unwrap();
    let worker = stage.hand_worker("by-hand").await;
    let run = worker.poll(5_000).await.expect("the run is there");
    (worker, run)
}

#[tokio::test]
async fn a_steps_timeout_is_its_own_or_the_runs_or_the_servers() {
    let stage = stage!(Pace::Steady);
    let worker = stage.hand_worker("by-hand").await;
    let timeout_ms = async |of_run, of_step| {
        let of_run = TimeoutConfig { start_to_close_timeout_seconds: of_run, ..Default::default() };
        let request = start_request("by-hand", &Script::default());
        stage.start_with(v1::StartWorkflowRequest { timeouts: Some(of_run), ..request }).await.unwrap();
        let run = worker.poll(5_000).await.expect("the run is there");
        let set = BeginStepRequest { start_to_close_timeout_seconds: of_step, ..Default::default() };
        begin(&worker, &run, set).await.start_to_close_timeout_ms
    };

    assert_eq!(timeout_ms(None, None).await, 600_000);
    assert_eq!(timeout_ms(Some(42), None).await, 42_000);
    assert_eq!(timeout_ms(Some(42), Some(7)).await, 7_000);
    stage.close().await;
}

#[tokio::test]
async fn a_failed_step_answers_with_its_retry_and_a_last_one_with_the_reason_also_when_asked_again() {
    let stage = stage!(Pace::Steady);
    let (worker, run) = held(&stage, start_request("by-hand", &Script::default())).await;
    let twice = RetryPolicy { maximum_attempts: Some(2), initial_interval_ms: Some(1), ..Default::default() };
    let set = BeginStepRequest { retry_policy: Some(twice), ..Default::default() };

    assert_eq!(begin(&worker, &run, set.clone()).await.attempt, 1);
    let first = fail(&worker, &run, "BUSY").await;
    assert!(first.scheduled_retry && first.retry_at.is_some(), "{first:?}");
    let run = worker.poll(5_000).await.expect("it is due again");
    assert_eq!(begin(&worker, &run, set.clone()).await.attempt, 2);
    let last = fail(&worker, &run, "BUSY").await;

    assert_eq!((last.scheduled_retry, last.attempt, last.finality()), (false, 2, Finality::Exhausted));
    let again = begin(&worker, &run, set).await;
    assert_eq!((again.should_execute, again.attempt, again.finality()), (false, 2, Finality::Exhausted));
    assert_eq!(again.failure.unwrap().code, "BUSY");
    let entry = &worker.journal(&run).await[0];
    assert_eq!((entry.status(), entry.finality()), (StepStatus::Failed, Finality::Exhausted));
    stage.close().await;
}

#[tokio::test]
async fn a_step_that_is_not_due_is_not_begun_and_holds_no_slot() {
    let stage = stage!(Pace::Steady);
    let (worker, run) = held(&stage, start_request("by-hand", &Script::default())).await;
    let later = RetryPolicy { initial_interval_ms: Some(600_000), ..Default::default() };
    let set = BeginStepRequest { retry_policy: Some(later), ..Default::default() };
    begin(&worker, &run, set).await;

    let failed = fail(&worker, &run, "BUSY").await;

    assert!(failed.scheduled_retry && failed.retry_in_ms > 590_000, "{failed:?}");
    let waiting = stage.run(&run.run_id).await;
    assert_eq!((waiting.reason(), waiting.locked_by.as_str()), (WaitReason::Retry, ""));
    assert_eq!(waiting.wake_up_at, failed.retry_at);
    assert!(worker.poll(50).await.is_none(), "nobody gets it before its time");
    stage.close().await;
}

#[tokio::test]
async fn a_run_that_times_out_closes_the_step_that_was_running() {
    let stage = stage!(Pace::Steady);
    let timeouts = TimeoutConfig { execution_timeout_seconds: Some(1), ..Default::default() };
    let request = start_request("by-hand", &Script::default());
    let (worker, run) = held(&stage, v1::StartWorkflowRequest { timeouts: Some(timeouts), ..request }).await;
    begin(&worker, &run, BeginStepRequest::default()).await;
    assert_eq!(attempts(&stage, &run.run_id).await[0].status(), StepStatus::Running);

    let ended = stage.finished(&run.run_id).await;

    let closed = attempts(&stage, &run.run_id).await;
    assert_eq!((closed.len(), closed[0].status()), (1, StepStatus::Failed));
    assert_eq!(closed[0].error.as_ref().unwrap().code, "TIMED_OUT");
    assert_eq!(closed[0].finished_at, ended.finished_at);
    let late = worker.complete_step(&run, CHARGE, "\"late\"").await.unwrap_err();
    assert_eq!(late.code(), tonic::Code::FailedPrecondition, "{late}");
    stage.close().await;
}

#[tokio::test]
async fn the_late_result_of_a_step_that_the_server_timed_out_is_refused() {
    let stage = stage!(Pace::Steady);
    let (worker, run) = held(&stage, start_request("by-hand", &Script::default())).await;
    let set = BeginStepRequest { start_to_close_timeout_seconds: Some(1), ..Default::default() };
    begin(&worker, &run, set).await;

    eventually("the server ends the attempt", async || {
        attempts(&stage, &run.run_id).await.iter().any(|attempt| attempt.error.is_some()).then_some(())
    })
    .await;

    let late = worker.complete_step(&run, CHARGE, "\"late\"").await.unwrap_err();
    assert_eq!(late.code(), tonic::Code::FailedPrecondition, "{late}");
    let again = worker.poll(5_000).await.expect("its next attempt is due");
    assert_eq!(begin(&worker, &again, BeginStepRequest::default()).await.attempt, 2);
    stage.close().await;
}
