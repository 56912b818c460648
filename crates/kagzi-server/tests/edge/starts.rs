//! What every start may say about itself.

use std::time::{Duration, SystemTime};

use kagzi_proto::{Reason, v1};

use crate::stage::Stage;

fn start() -> v1::StartWorkflowRequest {
    v1::StartWorkflowRequest {
        workflow_type: "order".into(),
        task_queue: "orders".into(),
        ..Default::default()
    }
}

fn by_business_id(id: &str) -> Option<v1::RunRef> {
    Some(v1::RunRef { r#ref: Some(v1::run_ref::Ref::BusinessId(id.into())) })
}

#[tokio::test]
async fn a_request_that_is_sent_twice_starts_one_run_and_is_not_mistaken_for_another() {
    let stage = Stage::open().await;
    let mut workflows = stage.workflows().await;
    let request = v1::StartWorkflowRequest { request_id: "r-1".into(), ..start() };

    let first = workflows.start_workflow(request.clone()).await.unwrap().into_inner();
    let again = workflows.start_workflow(request.clone()).await.unwrap().into_inner();
    let input = Some(v1::Payload { data: b"else".to_vec().into(), ..Default::default() });
    let other = workflows.start_workflow(v1::StartWorkflowRequest { input, ..request }).await.unwrap_err();
    let restart = v1::RestartWorkflowRunRequest {
        run_id: first.run_id.clone(),
        request_id: "r-2".into(),
        ..Default::default()
    };
    let new = workflows.restart_workflow_run(restart.clone()).await.unwrap().into_inner();
    let same = workflows.restart_workflow_run(restart).await.unwrap().into_inner();

    assert_eq!((again.run_id.as_str(), again.already_exists), (first.run_id.as_str(), true));
    assert_eq!(Reason::of(&other), Some(Reason::BusinessIdTaken), "{other}");
    assert_ne!(new.run_id, first.run_id);
    assert_eq!((same.run_id, same.already_exists), (new.run_id, true));
    stage.close().await;
}

#[tokio::test]
async fn a_run_that_is_to_start_later_says_so_and_a_time_that_has_passed_is_now() {
    let stage = Stage::open().await;
    let mut workflows = stage.workflows().await;
    let start_at = Some((SystemTime::now() + Duration::from_secs(3600)).into());
    let later = v1::StartWorkflowRequest { business_id: "later".into(), start_at, ..start() };
    let delayed =
        v1::StartWorkflowRequest { business_id: "delayed".into(), start_delay_ms: 3_600_000, ..start() };
    let both = v1::StartWorkflowRequest { start_at, start_delay_ms: 1, ..start() };
    let past = Some((SystemTime::now() - Duration::from_secs(3600)).into());
    let now = v1::StartWorkflowRequest { business_id: "now".into(), start_at: past, ..start() };

    for request in [later, delayed, now] {
        workflows.start_workflow(request).await.unwrap();
    }
    let refused = workflows.start_workflow(both).await.unwrap_err();

    for (id, waits) in [("later", true), ("delayed", true), ("now", false)] {
        let why = v1::ExplainWorkflowRunRequest { run: by_business_id(id), ..Default::default() };
        let why = workflows.explain_workflow_run(why).await.unwrap().into_inner().sentence;
        assert_eq!(why.contains("it starts at"), waits, "{id}: {why}");
        let get = v1::GetWorkflowRunRequest { run: by_business_id(id), ..Default::default() };
        let run = workflows.get_workflow_run(get).await.unwrap().into_inner().workflow_run.unwrap();
        assert_eq!(run.start_at.is_some(), waits, "{id}: {run:?}");
    }
    assert!(refused.message().starts_with("start_delay_ms is 1"), "{refused}");
    stage.close().await;
}

#[tokio::test]
async fn runs_are_listed_by_the_user_for_whom_they_are_and_no_label_can_pretend_to_be_one() {
    let stage = Stage::open().await;
    let mut workflows = stage.workflows().await;
    let mut ids = Vec::new();
    for user in ["ann", "bob", "ann"] {
        let labels = [("shop".to_owned(), "north".to_owned())].into();
        let request = v1::StartWorkflowRequest { user_id: user.into(), labels, ..start() };
        ids.push(workflows.start_workflow(request).await.unwrap().into_inner().run_id);
    }

    let filter = v1::ListWorkflowRunsRequest { user_id: "ann".into(), ..Default::default() };
    let found = workflows.list_workflow_runs(filter).await.unwrap().into_inner().workflow_runs;
    let labels = [("kagzi.user_id".to_owned(), "ann".to_owned())].into();
    let pretends = v1::StartWorkflowRequest { labels, ..start() };
    let refused = workflows.start_workflow(pretends).await.unwrap_err();

    let mut listed: Vec<_> = found.iter().map(|run| run.run_id.clone()).collect();
    listed.sort();
    assert_eq!(listed, [ids[0].clone(), ids[2].clone()]);
    assert!(found.iter().all(|run| run.user_id == "ann" && run.labels.len() == 1), "{found:?}");
    assert_eq!(Reason::of(&refused), Some(Reason::FieldInvalid), "{refused}");
    stage.close().await;
}

#[tokio::test]
async fn an_id_is_reused_as_its_start_says() {
    let stage = Stage::open().await;
    let mut workflows = stage.workflows().await;
    let with = |reuse: v1::IdReuse| v1::StartWorkflowRequest {
        business_id: "order-1".into(),
        id_reuse: reuse as i32,
        ..start()
    };
    let first = workflows.start_workflow(with(v1::IdReuse::Reject)).await.unwrap().into_inner().run_id;
    let rejected = workflows.start_workflow(with(v1::IdReuse::Reject)).await.unwrap_err();
    let cancel = v1::CancelWorkflowRunRequest { run: by_business_id("order-1"), ..Default::default() };
    workflows.cancel_workflow_run(cancel).await.unwrap();

    let second = workflows.start_workflow(with(v1::IdReuse::AfterFailure)).await.unwrap().into_inner();

    assert_eq!(Reason::of(&rejected), Some(Reason::BusinessIdTaken), "{rejected}");
    assert!(!second.already_exists && second.run_id != first, "{second:?}");
    stage.close().await;
}

#[tokio::test]
async fn a_run_is_named_by_its_business_id_and_a_prefix_is_for_reading_only() {
    let stage = Stage::open().await;
    let mut workflows = stage.workflows().await;
    let request = v1::StartWorkflowRequest { business_id: "order-1".into(), ..start() };
    let run_id = workflows.start_workflow(request).await.unwrap().into_inner().run_id;
    // UUIDs of one moment begin alike; this one is alone here.
    let prefix = run_id[..13].to_owned();

    let get = v1::GetWorkflowRunRequest { run_id: prefix.clone(), ..Default::default() };
    let read = workflows.get_workflow_run(get).await.unwrap().into_inner().workflow_run.unwrap();
    let cancel = v1::CancelWorkflowRunRequest { run_id: prefix, ..Default::default() };
    let refused = workflows.cancel_workflow_run(cancel).await.unwrap_err();
    let both = v1::CancelWorkflowRunRequest { run_id, run: by_business_id("order-1"), ..Default::default() };
    let twice = workflows.cancel_workflow_run(both).await.unwrap_err();
    let by_name = v1::CancelWorkflowRunRequest { run: by_business_id("order-1"), ..Default::default() };
    let cancelled = workflows.cancel_workflow_run(by_name).await.unwrap().into_inner();

    assert_eq!(read.business_id, "order-1");
    assert_eq!(Reason::of(&refused), Some(Reason::FieldInvalid), "{refused}");
    assert_eq!(Reason::of(&twice), Some(Reason::FieldInvalid), "{twice}");
    assert_eq!(cancelled.status(), v1::WorkflowStatus::Cancelled);
    stage.close().await;
}
