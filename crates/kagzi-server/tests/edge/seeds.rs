//! The calls, fields and numbers that the mission names (M-005, M-007, M-093) stay as they are: one worker
//! and one client use nothing else. The newer messages beside them say the same.

use kagzi_proto::{FILE_DESCRIPTOR_SET, Reason, v1};
use prost_reflect::DescriptorPool;
use tonic::Code;

use crate::stage::Stage;

const METHODS: &[&str] = &[
    "StartWorkflow",
    "GetWorkflowRun",
    "ListWorkflowRuns",
    "CancelWorkflowRun",
    "GetStepAttempt",
    "ListStepAttempts",
    "RegisterWorker",
    "WorkerHeartbeat",
    "DeregisterWorker",
    "ListWorkers",
    "GetWorker",
    "PollActivity",
    "BeginStep",
    "CompleteStep",
    "FailStep",
    "CompleteWorkflow",
    "FailWorkflow",
    "ScheduleSleep",
    "HealthCheck",
];

const FIELDS: &[(&str, &str, u32)] = &[
    ("StartWorkflowRequest", "timeouts", 20),
    ("StartWorkflowRequest", "retry_policy", 21),
    ("StartWorkflowRequest", "on_failure_workflow", 22),
    ("StartWorkflowRequest", "on_failure_task_queue", 23),
    ("BeginStepRequest", "start_to_close_timeout_seconds", 5),
    ("BeginStepRequest", "retry_policy", 6),
    ("FailStepRequest", "non_retryable", 4),
    ("FailStepRequest", "retry_after_ms", 5),
    ("WorkerHeartbeatRequest", "active_count", 2),
    ("WorkerHeartbeatRequest", "completed_delta", 3),
    ("WorkerHeartbeatRequest", "failed_delta", 4),
    ("WorkerHeartbeatResponse", "accepted", 1),
    ("WorkerHeartbeatResponse", "should_drain", 2),
];

#[test]
fn the_methods_fields_and_numbers_of_the_mission_are_there() {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).unwrap();
    let methods: Vec<String> = pool
        .services()
        .flat_map(|service| service.methods().map(|it| it.name().to_owned()).collect::<Vec<_>>())
        .collect();

    for method in METHODS {
        assert!(methods.iter().any(|name| name == method), "{method} is gone");
    }
    for (message, field, number) in FIELDS {
        let message = pool.get_message_by_name(&format!("kagzi.v1.{message}")).expect(message);
        let found = message.get_field_by_name(field).unwrap_or_else(|| panic!("{field} is gone"));
        assert_eq!(found.number(), *number, "{field}");
    }
    assert_eq!(v1::WorkflowStatus::TimedOut as i32, 7);
}

fn start(id: &str) -> v1::StartWorkflowRequest {
    v1::StartWorkflowRequest {
        business_id: id.into(),
        task_queue: "orders".into(),
        workflow_type: "order".into(),
        input: Some(v1::Payload { data: b"7".to_vec().into(), ..Default::default() }),
        timeouts: Some(v1::TimeoutConfig {
            start_to_close_timeout_seconds: Some(30),
            execution_timeout_seconds: Some(600),
            ..Default::default()
        }),
        retry_policy: Some(v1::RetryPolicy { maximum_attempts: Some(1), ..Default::default() }),
        on_failure_workflow: "tidy-up".into(),
        on_failure_task_queue: "cleaning".into(),
        ..Default::default()
    }
}

#[tokio::test]
async fn a_client_and_a_worker_that_know_only_the_missions_calls_get_through() {
    let stage = Stage::open().await;
    let (mut workflows, mut workers) = (stage.workflows().await, stage.workers().await);
    let health = stage.admin().await.health_check(v1::HealthCheckRequest {}).await.unwrap().into_inner();
    assert!(health.ready, "{health:?}");
    let register = v1::RegisterWorkerRequest {
        task_queue: "orders".into(),
        workflow_types: vec!["order".into()],
        ..Default::default()
    };
    let registered = workers.register_worker(register).await.unwrap().into_inner();
    assert!(registered.heartbeat_interval_secs > 0 && registered.stale_after_secs > 0);
    let worker_id = registered.worker_id;
    let poll = v1::PollActivityRequest {
        worker_id: worker_id.clone(),
        task_queue: "orders".into(),
        supported_workflow_types: vec!["order".into()],
        ..Default::default()
    };

    // One run that records a step, fails another for good and completes.
    let run_id = workflows.start_workflow(start("order-1")).await.unwrap().into_inner().run_id;
    let held = workers.poll_activity(poll.clone()).await.unwrap().into_inner();
    assert_eq!((held.run_id.as_str(), &held.workflow_input[..]), (run_id.as_str(), &b"7"[..]));
    let begin = |step: &str, position| v1::BeginStepRequest {
        run_id: run_id.clone(),
        step_id: step.into(),
        lease_epoch: held.lease_epoch,
        start_to_close_timeout_seconds: Some(10),
        position,
        ..Default::default()
    };
    let begun = workers.begin_step(begin("charge", 0)).await.unwrap().into_inner();
    assert!(begun.should_execute && begun.start_to_close_timeout_ms == 10_000, "{begun:?}");
    let complete = v1::CompleteStepRequest {
        run_id: run_id.clone(),
        step_id: "charge".into(),
        output: b"paid".to_vec().into(),
        lease_epoch: held.lease_epoch,
        ..Default::default()
    };
    assert!(!workers.complete_step(complete).await.unwrap().into_inner().already_recorded);
    let beat = v1::WorkerHeartbeatRequest {
        worker_id: worker_id.clone(),
        active_count: 1,
        completed_delta: 0,
        failed_delta: 0,
        runs: vec![v1::LeaseRef { run_id: run_id.clone(), epoch: held.lease_epoch }],
        ..Default::default()
    };
    let beaten = workers.worker_heartbeat(beat.clone()).await.unwrap().into_inner();
    assert!(beaten.accepted && !beaten.should_drain, "{beaten:?}");
    workers.begin_step(begin("ship", 1)).await.unwrap();
    let fail = v1::FailStepRequest {
        run_id: run_id.clone(),
        step_id: "ship".into(),
        error: "no stock".into(),
        non_retryable: true,
        lease_epoch: held.lease_epoch,
        position: 1,
        ..Default::default()
    };
    let failed = workers.fail_step(fail).await.unwrap().into_inner();
    assert_eq!((failed.scheduled_retry, failed.finality()), (false, v1::Finality::NonRetryable));
    let done = v1::CompleteWorkflowRequest {
        run_id: run_id.clone(),
        output: b"done".to_vec().into(),
        lease_epoch: held.lease_epoch,
        ..Default::default()
    };
    workers.complete_workflow(done).await.unwrap();

    let get = v1::GetWorkflowRunRequest { run_id: run_id.clone(), ..Default::default() };
    let run = workflows.get_workflow_run(get).await.unwrap().into_inner().workflow_run.unwrap();
    assert_eq!((run.status(), &run.output.unwrap().data[..]), (v1::WorkflowStatus::Completed, &b"done"[..]));
    let list = v1::ListStepAttemptsRequest { run_id: run_id.clone(), ..Default::default() };
    let attempts = workflows.list_step_attempts(list).await.unwrap().into_inner().step_attempts;
    assert_eq!(attempts.len(), 2);
    let get = v1::GetStepAttemptRequest { run_id, step_id: "charge".into(), ..Default::default() };
    let attempt = workflows.get_step_attempt(get).await.unwrap().into_inner().step_attempt.unwrap();
    assert_eq!(&attempt.output.unwrap().data[..], b"paid");

    // One that sleeps and is cancelled, and one that fails.
    let sleeper = workflows.start_workflow(start("order-2")).await.unwrap().into_inner().run_id;
    let held = workers.poll_activity(poll.clone()).await.unwrap().into_inner();
    let sleep = v1::ScheduleSleepRequest {
        run_id: sleeper.clone(),
        duration_seconds: 60,
        lease_epoch: held.lease_epoch,
        ..Default::default()
    };
    assert!(!workers.schedule_sleep(sleep).await.unwrap().into_inner().already_over);
    let cancel =
        v1::CancelWorkflowRunRequest { run_id: sleeper, reason: "enough".into(), ..Default::default() };
    let cancelled = workflows.cancel_workflow_run(cancel).await.unwrap().into_inner();
    assert_eq!(cancelled.status(), v1::WorkflowStatus::Cancelled);
    let failing = workflows.start_workflow(start("order-3")).await.unwrap().into_inner().run_id;
    let held = workers.poll_activity(poll).await.unwrap().into_inner();
    let fail = v1::FailWorkflowRequest {
        run_id: failing,
        error: "no".into(),
        lease_epoch: held.lease_epoch,
        ..Default::default()
    };
    assert!(!workers.fail_workflow(fail).await.unwrap().into_inner().scheduled_retry);
    let list =
        v1::ListWorkflowRunsRequest { status: v1::WorkflowStatus::Failed as i32, ..Default::default() };
    assert_eq!(workflows.list_workflow_runs(list).await.unwrap().into_inner().workflow_runs.len(), 1);

    // The worker leaves.
    let get = v1::GetWorkerRequest { worker_id: worker_id.clone(), ..Default::default() };
    assert_eq!(workers.get_worker(get).await.unwrap().into_inner().worker.unwrap().total_completed, 1);
    let list = v1::ListWorkersRequest { filter_status: "ONLINE".into(), ..Default::default() };
    assert_eq!(workers.list_workers(list).await.unwrap().into_inner().workers.len(), 1);
    let leave = v1::DeregisterWorkerRequest { worker_id, ..Default::default() };
    workers.deregister_worker(leave).await.unwrap();
    let offline =
        workers.worker_heartbeat(v1::WorkerHeartbeatRequest { runs: vec![], ..beat }).await.unwrap_err();
    assert_eq!(
        (offline.code(), Reason::of(&offline)),
        (Code::NotFound, Some(Reason::WorkerNotFound)),
        "{offline}"
    );
    stage.close().await;
}

#[tokio::test]
async fn a_worker_may_say_the_same_in_the_messages_of_the_stream() {
    let stage = Stage::open().await;
    let (mut workflows, mut workers) = (stage.workflows().await, stage.workers().await);
    let register = v1::RegisterWorkerRequest {
        task_queue: "orders".into(),
        workflow_types: vec!["order".into()],
        ..Default::default()
    };
    let worker_id = workers.register_worker(register).await.unwrap().into_inner().worker_id;
    let run_id = workflows.start_workflow(start("order-1")).await.unwrap().into_inner().run_id;
    let poll = v1::PollActivityRequest {
        worker_id,
        supported_workflow_types: vec!["order".into()],
        ..Default::default()
    };
    let lease = workers.poll_activity(poll).await.unwrap().into_inner().lease;
    let step = |path: &str, position| Some(v1::StepRef { path: path.into(), position });
    let text =
        |text: &'static str| Some(v1::Payload { data: text.into(), content_type: "text/plain".into() });

    let begin = v1::BeginStepRequest {
        lease: lease.clone(),
        step: step("charge", 0),
        start_to_close_timeout_ms: Some(1_500),
        ..Default::default()
    };
    assert_eq!(workers.begin_step(begin).await.unwrap().into_inner().start_to_close_timeout_ms, 1_500);
    let complete = v1::CompleteStepRequest {
        lease: lease.clone(),
        step: step("charge", 0),
        result: text("paid"),
        ..Default::default()
    };
    workers.complete_step(complete).await.unwrap();
    let failure = Some(v1::Failure {
        code: "NO_STOCK".into(),
        message: "sold out".into(),
        class: "permanent".into(),
        non_retryable: true,
        ..Default::default()
    });
    let fail = v1::FailStepRequest {
        lease: lease.clone(),
        step: step("ship", 1),
        failure: failure.clone(),
        ..Default::default()
    };
    workers.fail_step(fail).await.unwrap();
    workers.fail_workflow(v1::FailWorkflowRequest { lease, failure, ..Default::default() }).await.unwrap();

    let get = v1::GetWorkflowRunRequest { run_id: run_id.clone(), ..Default::default() };
    let run = workflows.get_workflow_run(get).await.unwrap().into_inner().workflow_run.unwrap();
    let error = run.error.unwrap();
    assert_eq!((error.code.as_str(), error.class.as_str()), ("NO_STOCK", "permanent"));
    let get = v1::GetStepAttemptRequest { run_id, step_id: "charge".into(), ..Default::default() };
    let attempt = workflows.get_step_attempt(get).await.unwrap().into_inner().step_attempt.unwrap();
    assert_eq!(attempt.output, text("paid"));
    stage.close().await;
}
