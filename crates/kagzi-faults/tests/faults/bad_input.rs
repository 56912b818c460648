//! Hostile requests against the raw API: refused by field, nothing written, the server works on.

use std::collections::HashMap;

use kagzi_faults::{HandWorker, Pace, Script, Stage, eventually, stage, start_request};
use kagzi_proto::v1;
use tonic::{Code, Status};

const RUN: &str = "0190a0b0-0000-7000-8000-000000000000";

/// What was refused, the field that must be named, and the answer.
pub type Refused = (&'static str, &'static str, Result<(), Status>);

async fn start(stage: &Stage, change: impl FnOnce(&mut v1::StartWorkflowRequest)) -> Result<(), Status> {
    let mut request = start_request("script", &Script::default());
    change(&mut request);
    stage.start_with(request).await.map(|_| ())
}

async fn bad_starts(stage: &Stage) -> Vec<Refused> {
    let long = || "x".repeat(256);
    let policy = |policy| move |r: &mut v1::StartWorkflowRequest| r.retry_policy = Some(policy);
    let times = |times| move |r: &mut v1::StartWorkflowRequest| r.timeouts = Some(times);
    let at = |seconds, nanos| {
        move |r: &mut v1::StartWorkflowRequest| {
            r.deadline_at = Some(prost_types::Timestamp { seconds, nanos });
        }
    };
    let none = v1::RetryPolicy::default;
    let no_time = v1::TimeoutConfig::default;
    vec![
        ("empty type", "workflow_type", start(stage, |r| r.workflow_type.clear()).await),
        ("long type", "workflow_type", start(stage, |r| r.workflow_type = long()).await),
        ("newline in type", "workflow_type", start(stage, |r| r.workflow_type = "a\nb".into()).await),
        ("NUL in type", "workflow_type", start(stage, |r| r.workflow_type = "a\0".into()).await),
        ("empty queue", "task_queue", start(stage, |r| r.task_queue.clear()).await),
        ("long queue", "task_queue", start(stage, |r| r.task_queue = long()).await),
        ("escape in queue", "task_queue", start(stage, |r| r.task_queue = "\u{1b}[2J".into()).await),
        ("long business id", "business_id", start(stage, |r| r.business_id = long()).await),
        ("control in business id", "business_id", start(stage, |r| r.business_id = "a\u{7f}".into()).await),
        ("long namespace", "namespace_id", start(stage, |r| r.namespace_id = long()).await),
        ("control in namespace", "namespace_id", start(stage, |r| r.namespace_id = "\t".into()).await),
        (
            "control in content type",
            "content_type",
            start(stage, |r| r.input.as_mut().unwrap().content_type = "text/\r\nplain".into()).await,
        ),
        (
            "NaN",
            "backoff_coefficient",
            start(stage, policy(v1::RetryPolicy { backoff_coefficient: Some(f64::NAN), ..none() })).await,
        ),
        (
            "infinity",
            "backoff_coefficient",
            start(stage, policy(v1::RetryPolicy { backoff_coefficient: Some(f64::INFINITY), ..none() }))
                .await,
        ),
        (
            "negative coefficient",
            "backoff_coefficient",
            start(stage, policy(v1::RetryPolicy { backoff_coefficient: Some(-2.0), ..none() })).await,
        ),
        (
            "no attempts",
            "maximum_attempts",
            start(stage, policy(v1::RetryPolicy { maximum_attempts: Some(0), ..none() })).await,
        ),
        (
            "negative attempts",
            "maximum_attempts",
            start(stage, policy(v1::RetryPolicy { maximum_attempts: Some(-2), ..none() })).await,
        ),
        (
            "negative interval",
            "initial_interval_ms",
            start(stage, policy(v1::RetryPolicy { initial_interval_ms: Some(-1), ..none() })).await,
        ),
        (
            "endless interval",
            "maximum_interval_ms",
            start(stage, policy(v1::RetryPolicy { maximum_interval_ms: Some(i64::MAX), ..none() })).await,
        ),
        (
            "endless execution",
            "execution_timeout_seconds",
            start(stage, times(v1::TimeoutConfig { execution_timeout_seconds: Some(u64::MAX), ..no_time() }))
                .await,
        ),
        (
            "endless step",
            "start_to_close_timeout_seconds",
            start(
                stage,
                times(v1::TimeoutConfig {
                    start_to_close_timeout_seconds: Some(u64::MAX / 1000),
                    ..no_time()
                }),
            )
            .await,
        ),
        (
            "step of no time",
            "start_to_close_timeout_seconds",
            start(stage, times(v1::TimeoutConfig { start_to_close_timeout_seconds: Some(0), ..no_time() }))
                .await,
        ),
        (
            "heartbeat too short",
            "heartbeat_timeout_seconds",
            start(stage, times(v1::TimeoutConfig { heartbeat_timeout_seconds: Some(1), ..no_time() })).await,
        ),
        ("deadline in the past", "deadline_at", start(stage, at(1, 0)).await),
        ("deadline before time", "deadline_at", start(stage, at(i64::MIN, 0)).await),
        ("deadline after time", "deadline_at", start(stage, at(i64::MAX, 0)).await),
        ("deadline with odd nanos", "deadline_at", start(stage, at(i64::from(u32::MAX), -1)).await),
    ]
}

async fn bad_reads(stage: &Stage) -> Vec<Refused> {
    let get = async |run_id: &str| {
        let request = v1::GetWorkflowRunRequest { run_id: run_id.into(), ..Default::default() };
        stage.workflows().get_workflow_run(request).await.map(|_| ())
    };
    let list = async |request| stage.workflows().list_workflow_runs(request).await.map(|_| ());
    let all = v1::ListWorkflowRunsRequest::default;
    let workers = async |request| stage.registry().list_workers(request).await.map(|_| ());
    let all_workers = v1::ListWorkersRequest::default;
    let wait = async |run_id: &str, timeout_ms| {
        let request = v1::WaitWorkflowRunRequest { run_id: run_id.into(), timeout_ms, ..Default::default() };
        stage.workflows().wait_workflow_run(request).await.map(|_| ())
    };
    let cancel = async |run_id: &str, reason: String| {
        let request = v1::CancelWorkflowRunRequest { run_id: run_id.into(), reason, ..Default::default() };
        stage.workflows().cancel_workflow_run(request).await.map(|_| ())
    };
    let events = async |run_id: &str, page_size| {
        let request = v1::ListRunEventsRequest { run_id: run_id.into(), page_size, ..Default::default() };
        stage.workflows().list_run_events(request).await.map(|_| ())
    };
    let attempts = async |run_id: &str, page_size, page_token: &str| {
        let request = v1::ListStepAttemptsRequest {
            run_id: run_id.into(),
            page_size,
            page_token: page_token.into(),
            ..Default::default()
        };
        stage.workflows().list_step_attempts(request).await.map(|_| ())
    };
    let real = stage.start(&Script::default()).await;
    vec![
        ("no id at all", "business_id", get("").await),
        ("malformed id", "run_id", get("not-an-id").await),
        ("short prefix", "run_id", get("0190").await),
        ("id with a quote", "run_id", get("0190a0b0' OR 1=1 --").await),
        ("id with multibyte", "run_id", get("ééééééééé").await),
        ("negative page", "page_size", list(v1::ListWorkflowRunsRequest { page_size: -1, ..all() }).await),
        ("huge page", "page_size", list(v1::ListWorkflowRunsRequest { page_size: i32::MAX, ..all() }).await),
        ("unknown status", "status", list(v1::ListWorkflowRunsRequest { status: 99, ..all() }).await),
        ("negative status", "status", list(v1::ListWorkflowRunsRequest { status: -1, ..all() }).await),
        (
            "malformed token",
            "page_token",
            list(v1::ListWorkflowRunsRequest { page_token: "../../etc".into(), ..all() }).await,
        ),
        (
            "negative page",
            "page_size",
            workers(v1::ListWorkersRequest { page_size: -1, ..all_workers() }).await,
        ),
        (
            "unknown status",
            "filter_status",
            workers(v1::ListWorkersRequest { filter_status: "BUSY".into(), ..all_workers() }).await,
        ),
        ("malformed id", "run_id", wait("nonsense", 1).await),
        ("negative wait", "timeout_ms", wait(RUN, -1).await),
        ("malformed id", "run_id", cancel("nonsense", String::new()).await),
        ("long reason", "reason", cancel(&real, "x".repeat(1025)).await),
        ("negative page", "page_size", events(&real, -1).await),
        ("negative page", "page_size", attempts(&real, -1, "").await),
        ("malformed token", "page_token", attempts(&real, 1, "-1").await),
    ]
}

async fn bad_registrations(stage: &Stage) -> Vec<Refused> {
    let good = || v1::RegisterWorkerRequest {
        task_queue: "q".into(),
        workflow_types: vec!["t".into()],
        ..Default::default()
    };
    let register = async |change: &dyn Fn(&mut v1::RegisterWorkerRequest)| {
        let mut request = good();
        change(&mut request);
        stage.registry().register_worker(request).await.map(|_| ())
    };
    let label = |key: &str, value: &str| HashMap::from([(key.to_owned(), value.to_owned())]);
    let heartbeat = async |request| stage.registry().worker_heartbeat(request).await.map(|_| ());
    let poll = async |request| stage.registry().poll_activity(request).await.map(|_| ());
    let good_poll = || v1::PollActivityRequest {
        worker_id: RUN.into(),
        supported_workflow_types: vec!["t".into()],
        ..Default::default()
    };
    vec![
        ("no types", "workflow_types", register(&|r| r.workflow_types.clear()).await),
        ("empty type", "workflow_types", register(&|r| r.workflow_types.push(String::new())).await),
        ("too many types", "workflow_types", register(&|r| r.workflow_types = vec!["t".into(); 1001]).await),
        ("empty queue", "task_queue", register(&|r| r.task_queue.clear()).await),
        ("no slots", "max_concurrent", register(&|r| r.max_concurrent = Some(0)).await),
        ("negative slots", "max_concurrent", register(&|r| r.max_concurrent = Some(-1)).await),
        ("absurd slots", "max_concurrent", register(&|r| r.max_concurrent = Some(i32::MAX)).await),
        ("long hostname", "hostname", register(&|r| r.hostname = "h".repeat(256)).await),
        ("control in version", "version", register(&|r| r.version = "1\u{8}".into()).await),
        ("empty label", "labels", register(&|r| r.labels = label("", "x")).await),
        ("control in label", "labels", register(&|r| r.labels = label("k", "a\nb")).await),
        (
            "too many labels",
            "labels",
            register(&|r| r.labels = (0..65).map(|n| (n.to_string(), String::new())).collect()).await,
        ),
        (
            "malformed worker id",
            "worker_id",
            heartbeat(v1::WorkerHeartbeatRequest { worker_id: "me".into(), ..Default::default() }).await,
        ),
        (
            "epoch 0",
            "lease_epoch",
            heartbeat(v1::WorkerHeartbeatRequest {
                worker_id: RUN.into(),
                runs: vec![v1::LeaseRef { run_id: RUN.into(), epoch: 0 }],
                ..Default::default()
            })
            .await,
        ),
        (
            "malformed worker id",
            "worker_id",
            poll(v1::PollActivityRequest { worker_id: "me".into(), ..good_poll() }).await,
        ),
        (
            "negative wait",
            "timeout_ms",
            poll(v1::PollActivityRequest { timeout_ms: -1, ..good_poll() }).await,
        ),
        (
            "no types",
            "supported_workflow_types",
            poll(v1::PollActivityRequest { supported_workflow_types: vec![], ..good_poll() }).await,
        ),
    ]
}

async fn bad_writes(worker: &HandWorker, run_id: &str, lease_epoch: u64) -> Vec<Refused> {
    let mut rpc = worker.rpc.clone();
    let mut step = async |change: &dyn Fn(&mut v1::CompleteStepRequest)| {
        let mut request = v1::CompleteStepRequest {
            run_id: run_id.into(),
            step_id: "charge".into(),
            lease_epoch,
            ..Default::default()
        };
        change(&mut request);
        rpc.complete_step(request).await.map(|_| ())
    };
    let steps: Vec<Refused> = vec![
        ("epoch 0", "lease_epoch", step(&|r| r.lease_epoch = 0).await),
        ("epoch beyond time", "lease_epoch", step(&|r| r.lease_epoch = u64::MAX).await),
        ("malformed run", "run_id", step(&|r| r.run_id = "run".into()).await),
        ("prefix of a run", "run_id", step(&|r| r.run_id.truncate(8)).await),
        ("empty step", "step_id", step(&|r| r.step_id.clear()).await),
        ("long step", "step_id", step(&|r| r.step_id = "s".repeat(1025)).await),
        ("control in step", "step_id", step(&|r| r.step_id = "a\u{0}b".into()).await),
        ("control in content type", "content_type", step(&|r| r.content_type = "\n".into()).await),
    ];
    let mut rpc = worker.rpc.clone();
    let sleep = |duration_seconds, duration_ms| v1::ScheduleSleepRequest {
        run_id: run_id.into(),
        lease_epoch,
        duration_seconds,
        duration_ms,
        ..Default::default()
    };
    let begin = v1::BeginStepRequest {
        run_id: run_id.into(),
        step_id: "charge".into(),
        lease_epoch,
        start_to_close_timeout_seconds: Some(u64::MAX),
        ..Default::default()
    };
    let fail = v1::FailStepRequest {
        run_id: run_id.into(),
        step_id: "charge".into(),
        lease_epoch,
        retry_policy: Some(v1::RetryPolicy { backoff_coefficient: Some(f64::NAN), ..Default::default() }),
        ..Default::default()
    };
    let release = v1::ReleaseRunRequest {
        run_id: run_id.into(),
        lease_epoch,
        reason: "x".repeat(1025),
        ..Default::default()
    };
    let others: Vec<Refused> = vec![
        ("endless sleep", "duration_seconds", rpc.schedule_sleep(sleep(u64::MAX, 0)).await.map(|_| ())),
        ("endless sleep", "duration_", rpc.schedule_sleep(sleep(0, u64::MAX)).await.map(|_| ())),
        ("endless step", "start_to_close_timeout_seconds", rpc.begin_step(begin).await.map(|_| ())),
        ("NaN", "backoff_coefficient", rpc.fail_step(fail).await.map(|_| ())),
        ("long reason", "reason", rpc.release_run(release).await.map(|_| ())),
    ];
    steps.into_iter().chain(others).collect()
}

pub fn all_name_their_field(refused: Vec<Refused>) {
    for (what, field, answer) in refused {
        let refusal = answer.err().unwrap_or_else(|| panic!("{what}: {field} was accepted"));
        assert_eq!(refusal.code(), Code::InvalidArgument, "{what}: {refusal}");
        assert!(refusal.message().contains(field), "{what}: {field} is not named in: {refusal}");
        let raw = |c: char| c.is_control();
        assert!(!refusal.message().contains(raw), "{what}: the message is not escaped: {refusal:?}");
        assert!(refusal.message().len() < 500, "{what}: the message repeats too much: {refusal}");
    }
}

#[tokio::test]
async fn bad_starts_are_refused_by_field_and_start_nothing() {
    let stage = stage!(Pace::Steady);

    all_name_their_field(bad_starts(&stage).await);

    let evidence = stage.close().await;
    assert_eq!(evidence.runs, 0);
}

#[tokio::test]
async fn bad_questions_are_refused_by_field() {
    let stage = stage!(Pace::Steady);

    all_name_their_field(bad_reads(&stage).await);

    let _worker = stage.worker(&[]).await;
    let run = stage.start(&Script::steps(&["a"])).await;
    stage.completed(&run).await;
    stage.close().await;
}

#[tokio::test]
async fn bad_workers_are_refused_by_field_and_not_registered() {
    let stage = stage!(Pace::Steady);

    all_name_their_field(bad_registrations(&stage).await);

    let rows = stage.registry().list_workers(v1::ListWorkersRequest::default()).await.unwrap().into_inner();
    assert_eq!(rows.total_count, 0);
    stage.close().await;
}

#[tokio::test]
async fn bad_writes_are_refused_by_field_and_leave_the_run_as_it_was() {
    let stage = stage!(Pace::Steady);
    let worker = stage.hand_worker("by-hand").await;
    let run = stage.start_with(start_request("by-hand", &Script::default())).await.unwrap().run_id;
    let held = worker.poll(5_000).await.expect("a run");

    all_name_their_field(bad_writes(&worker, &run, held.lease_epoch).await);

    assert_eq!(stage.kinds(&run).await, ["run_started", "run_claimed"]);
    worker.complete(&held, "done").await.expect("the lease is still good");
    stage.close().await;
}

/// What is allowed but nasty must come back as it was and break no later read.
#[tokio::test]
async fn nasty_names_and_error_texts_break_no_later_read() {
    let stage = stage!(Pace::Steady);
    let nasty = "'; DROP TABLE runs; -- \u{202e}\u{feff}\"\\%_<script>🍵";
    let worker = stage.hand_worker(nasty).await;
    let mut request = start_request(nasty, &Script::default());
    request.business_id = nasty.into();
    let run = stage.start_with(request).await.unwrap().run_id;
    let held = worker.poll(5_000).await.expect("a run");
    worker.complete_step(&held, nasty, nasty).await.unwrap();
    let fail = v1::FailWorkflowRequest {
        run_id: run.clone(),
        error: format!("{}\u{0}\u{1b}[31m{nasty}", "€".repeat(5_000)),
        error_code: "C".repeat(10_000),
        lease_epoch: held.lease_epoch,
        ..Default::default()
    };
    worker.rpc.clone().fail_workflow(fail).await.unwrap();

    stage.kill_server().await;
    stage.restart_server().await;
    eventually("the server answers", async || {
        stage.workflows().list_workflow_runs(v1::ListWorkflowRunsRequest::default()).await.ok()
    })
    .await;

    let seen = stage.run(&run).await;
    assert_eq!((seen.workflow_type.as_str(), seen.business_id.as_str()), (nasty, nasty));
    let error = seen.error.unwrap();
    assert!(error.message.len() <= 4096 && error.code.len() <= 255);
    assert_eq!(stage.events(&run).await[2].step, nasty);
    stage.explain(&run).await;
    let by_id = v1::GetWorkflowRunRequest { business_id: nasty.into(), ..Default::default() };
    assert_eq!(
        stage.workflows().get_workflow_run(by_id).await.unwrap().into_inner().workflow_run.unwrap().run_id,
        run
    );
    stage.close().await;
}
