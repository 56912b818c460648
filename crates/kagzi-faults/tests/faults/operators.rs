//! What operators set, with real processes: limits, paused queues, disabled namespaces, workers taken
//! offline.

use std::{path::Path, time::Duration};

use kagzi_faults::{Evidence, Pace, QUEUE, Script, eventually, flatten, stage};
use kagzi_proto::v1::{self, WorkerStatus, WorkflowStatus};
use tonic::Code;

/// The most runs that were leased after any commit: every lease begins and ends with an event, one writer
/// commits them in order, and within a commit what ends goes before what begins.
fn most_leased(file: &Path) -> i64 {
    let replay = "
        SELECT max(leased)
          FROM (SELECT sum(moved) OVER (ORDER BY at) AS leased
                  FROM (SELECT at, CASE kind WHEN 2 THEN 1 ELSE -1 END AS moved
                          FROM flat_events
                         WHERE kind IN (2, 8, 9, 10, 11, 13, 14, 15, 16)))";
    let db = rusqlite::Connection::open(file).expect("the file is there");
    flatten(&db);
    db.query_row(replay, [], |row| row.get(0)).expect("the schema is known")
}

fn limit(most: u32) -> v1::LimitQueueRequest {
    v1::LimitQueueRequest { task_queue: QUEUE.into(), max_concurrent: Some(most), ..Default::default() }
}

#[tokio::test]
async fn a_limit_holds_at_every_commit_while_workers_and_the_server_are_killed() {
    let stage = stage!(Pace::Brisk);
    stage.admin().limit_queue(limit(3)).await.unwrap();
    let first = stage.worker(&[]).await;
    let mut workers = vec![stage.worker(&[]).await];
    let mut runs = Vec::new();
    for _ in 0..30 {
        runs.push(stage.start(&Script::steps(&["reserve", "charge"])).await);
    }

    first.kill().await;
    stage.kill_server().await;
    stage.restart_server().await;
    workers.push(stage.worker(&[]).await);
    for _ in 0..10 {
        runs.push(stage.start(&Script::steps(&["reserve", "charge"])).await);
    }
    for run in &runs {
        stage.completed(run).await;
    }

    stage.kill_server().await;
    let most = most_leased(stage.file());
    assert!((1..=3).contains(&most), "{most} runs were leased at once");
    let Evidence { runs, completed, .. } = stage.close().await;
    assert_eq!((runs, completed), (40, 40));
}

#[tokio::test]
async fn a_paused_queue_says_so_lets_runs_finish_and_goes_on_at_once() {
    let stage = stage!(Pace::Steady);
    let _worker = stage.worker(&[]).await;
    let running = stage.start(&Script::default().gated("charge")).await;
    stage.began(&running, "charge", 1).await;

    let pause = v1::PauseQueueRequest {
        task_queue: QUEUE.into(),
        note: "deploy".into(),
        by: "ada".into(),
        ..Default::default()
    };
    stage.admin().pause_queue(pause).await.unwrap();
    let waiting = stage.start(&Script::steps(&["next"])).await;
    stage.log.open_gate("charge");
    stage.completed(&running).await;
    let why = stage.explain(&waiting).await.sentence;
    let queues = stage.admin().list_queues(v1::ListQueuesRequest::default()).await.unwrap().into_inner();
    let resume = v1::ResumeQueueRequest { task_queue: QUEUE.into(), ..Default::default() };
    stage.admin().resume_queue(resume).await.unwrap();
    stage.completed(&waiting).await;

    assert!(
        why.contains("queue 'faults' was paused by ada") && why.contains(": deploy; let it go on with"),
        "{why}"
    );
    let queue = &queues.queues[0];
    assert_eq!((queue.ready, queue.leased, queue.workers), (1, 0, 1));
    assert!(queue.gate.as_ref().is_some_and(|gate| gate.paused && gate.paused_note == "deploy"));
    assert!(queue.oldest_ready_at.is_some());
    stage.close().await;
}

#[tokio::test]
async fn a_full_queue_says_so() {
    let stage = stage!(Pace::Steady);
    stage.admin().limit_queue(limit(1)).await.unwrap();
    let _worker = stage.worker(&[]).await;
    let running = stage.start(&Script::default().gated("charge")).await;
    stage.began(&running, "charge", 1).await;
    let waiting = stage.start(&Script::steps(&["next"])).await;

    let why = stage.explain(&waiting).await.sentence;
    stage.log.open_gate("charge");
    stage.completed(&waiting).await;

    assert!(why.contains("queue 'faults' is limited to 1 runs at once, and 1 run now"), "{why}");
    stage.close().await;
}

#[tokio::test]
async fn a_disabled_namespace_refuses_starts_and_finishes_what_it_has() {
    let stage = stage!(Pace::Steady);
    let _worker = stage.worker(&[]).await;
    let running = stage.start(&Script::default().gated("charge")).await;
    stage.began(&running, "charge", 1).await;

    let disable =
        v1::DisableNamespaceRequest { note: "unpaid".into(), by: "ada".into(), ..Default::default() };
    stage.admin().disable_namespace(disable).await.unwrap();
    let refused = stage.start_with(kagzi_faults::start_request("script", &Script::steps(&["a"]))).await;
    stage.log.open_gate("charge");
    stage.completed(&running).await;
    stage.admin().enable_namespace(v1::EnableNamespaceRequest::default()).await.unwrap();
    let after = stage.start(&Script::steps(&["a"])).await;
    stage.completed(&after).await;

    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("namespace 'default' is disabled by ada: unpaid"), "{refused}");
    stage.close().await;
}

#[tokio::test]
async fn a_namespaces_defaults_reach_its_runs() {
    let stage = stage!(Pace::Steady);
    let values = v1::NamespaceValues {
        retry_policy: Some(v1::RetryPolicy { maximum_attempts: Some(2), ..Default::default() }),
        timeouts: Some(v1::TimeoutConfig { execution_timeout_seconds: Some(3600), ..Default::default() }),
        max_concurrent: Some(7),
        ..Default::default()
    };
    let create = v1::CreateNamespaceRequest { namespace_id: "shop".into(), values: Some(values) };
    stage.admin().create_namespace(create.clone()).await.unwrap();
    let again = stage.admin().create_namespace(create).await.unwrap_err();

    let mut start = kagzi_faults::start_request("script", &Script::steps(&["a"]));
    start.namespace_id = "shop".into();
    let run_id = stage.start_with(start).await.unwrap().run_id;
    let request = v1::GetWorkflowRunRequest { run_id, namespace_id: "shop".into(), ..Default::default() };
    let run = stage.workflows().get_workflow_run(request).await.unwrap().into_inner().workflow_run.unwrap();
    let shown = v1::GetNamespaceRequest { namespace_id: "shop".into() };
    let shown = stage.admin().get_namespace(shown).await.unwrap().into_inner().namespace.unwrap();

    assert_eq!(again.code(), Code::AlreadyExists);
    let policy = run.retry_policy.unwrap();
    assert_eq!((policy.maximum_attempts, policy.initial_interval_ms), (Some(2), Some(20)));
    assert!(run.deadline_at.is_some());
    assert_eq!(shown.max_concurrent, Some(7));
    stage.close().await;
}

#[tokio::test]
async fn a_worker_taken_offline_loses_its_runs_long_before_it_is_stale() {
    let stage = stage!(Pace::Calm);
    let taken = stage.worker(&[]).await;
    let run = stage.start(&Script::default().gated("charge")).await;
    stage.began(&run, "charge", 1).await;
    let heir = stage.worker(&[]).await;
    let worker_id = stage.workers_of(taken.pid()).await.remove(0).worker_id;

    let request = v1::TakeWorkerOfflineRequest { worker_id: worker_id.clone(), ..Default::default() };
    let answer = stage.registry().take_worker_offline(request).await.unwrap().into_inner();
    let charges = stage.began(&run, "charge", 2).await;
    stage.log.open_gate("charge");
    let ended = stage.completed(&run).await;

    assert_eq!((answer.released, answer.worker.unwrap().status()), (1, WorkerStatus::Offline));
    assert_eq!(charges[1].pid, heir.pid());
    assert_eq!((ended.status(), ended.attempts, ended.dispatch_count), (WorkflowStatus::Completed, 0, 2));
    eventually("it is told to stop, and does not come back as another", async || {
        let rows = stage.workers_of(taken.pid()).await;
        (rows.len() == 1 && rows[0].status() == WorkerStatus::Offline).then_some(())
    })
    .await;
    stage.close().await;
}

#[tokio::test]
async fn a_server_deletes_what_is_past_its_namespaces_retention_and_nothing_else() {
    let stage = stage!(Pace::Steady);
    let values = v1::NamespaceValues { retention_ms: Some(120_000), ..Default::default() };
    let create = v1::CreateNamespaceRequest { namespace_id: "scratch".into(), values: Some(values) };
    stage.admin().create_namespace(create).await.unwrap();
    let start_in = async |namespace: &str| {
        let mut start = kagzi_faults::start_request("script", &Script::steps(&["a"]));
        start.namespace_id = namespace.into();
        // Not by `stage.start_with`: what it starts must survive.
        stage.workflows().start_workflow(start).await.unwrap().into_inner().run_id
    };
    let cancel = async |run_id: &String, namespace: &str| {
        let request = v1::CancelWorkflowRunRequest {
            run_id: run_id.clone(),
            namespace_id: namespace.into(),
            ..Default::default()
        };
        stage.workflows().cancel_workflow_run(request).await.unwrap();
    };
    let (old, living, other) = (start_in("scratch").await, start_in("scratch").await, start_in("").await);
    cancel(&old, "scratch").await;
    cancel(&other, "").await;
    let get = async |run_id: &String, namespace: &str| {
        let request = v1::GetWorkflowRunRequest {
            run_id: run_id.clone(),
            namespace_id: namespace.into(),
            ..Default::default()
        };
        stage.workflows().get_workflow_run(request).await.map(drop)
    };

    // A server looks as soon as it starts, and then every minute.
    stage.kill_server().await;
    stage.let_ended_runs_age("scratch", Duration::from_secs(121));
    stage.restart_server().await;
    eventually("the old run is gone", async || {
        get(&old, "scratch").await.err().filter(|status| status.code() == Code::NotFound)
    })
    .await;

    assert_eq!(stage.metric("kagzi_retention_runs_deleted_total").await, 1.0);
    get(&living, "scratch").await.unwrap();
    get(&other, "").await.unwrap();
    stage.close().await;
}
