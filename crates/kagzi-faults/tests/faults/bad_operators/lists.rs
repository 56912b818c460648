//! Everything that lists.

use std::collections::HashMap;

use kagzi_faults::{Pace, Script, Stage, stage};
use kagzi_proto::v1;
use tonic::Status;

use super::{NO_TOKENS, at, huge, labels, long, schedules::schedule};
use crate::bad_input::{Refused, all_name_their_field};

async fn runs(stage: &Stage, change: impl FnOnce(&mut v1::ListWorkflowRunsRequest)) -> Result<(), Status> {
    let mut request = v1::ListWorkflowRunsRequest::default();
    change(&mut request);
    stage.workflows().list_workflow_runs(request).await.map(|_| ())
}

pub async fn events(
    stage: &Stage,
    run: &str,
    change: impl FnOnce(&mut v1::ListRunEventsRequest),
) -> Result<(), Status> {
    let mut request = v1::ListRunEventsRequest { run_id: run.into(), ..Default::default() };
    change(&mut request);
    stage.workflows().list_run_events(request).await.map(|_| ())
}

pub async fn attempts(
    stage: &Stage,
    run: &str,
    change: impl FnOnce(&mut v1::ListStepAttemptsRequest),
) -> Result<(), Status> {
    let mut request = v1::ListStepAttemptsRequest { run_id: run.into(), ..Default::default() };
    change(&mut request);
    stage.workflows().list_step_attempts(request).await.map(|_| ())
}

async fn workers(stage: &Stage, change: impl FnOnce(&mut v1::ListWorkersRequest)) -> Result<(), Status> {
    let mut request = v1::ListWorkersRequest::default();
    change(&mut request);
    stage.registry().list_workers(request).await.map(|_| ())
}

async fn schedules(stage: &Stage, change: impl FnOnce(&mut v1::ListSchedulesRequest)) -> Result<(), Status> {
    let mut request = v1::ListSchedulesRequest::default();
    change(&mut request);
    stage.schedules().list_schedules(request).await.map(|_| ())
}

async fn namespaces(
    stage: &Stage,
    change: impl FnOnce(&mut v1::ListNamespacesRequest),
) -> Result<(), Status> {
    let mut request = v1::ListNamespacesRequest::default();
    change(&mut request);
    stage.admin().list_namespaces(request).await.map(|_| ())
}

async fn queues(stage: &Stage, change: impl FnOnce(&mut v1::ListQueuesRequest)) -> Result<(), Status> {
    let mut request = v1::ListQueuesRequest::default();
    change(&mut request);
    stage.admin().list_queues(request).await.map(|_| ())
}

async fn bad_lists(stage: &Stage, run: &str) -> Vec<Refused> {
    let mut refused: Vec<Refused> = Vec::new();
    for size in [-1, i32::MIN, 5_001, i32::MAX] {
        refused.extend([
            ("page size", "page_size is", runs(stage, |r| r.page_size = size).await),
            ("page size", "page_size is", events(stage, run, |r| r.page_size = size).await),
            ("page size", "page_size is", attempts(stage, run, |r| r.page_size = size).await),
            ("page size", "page_size is", workers(stage, |r| r.page_size = size).await),
            ("page size", "page_size is", schedules(stage, |r| r.page_size = size).await),
            ("page size", "page_size is", namespaces(stage, |r| r.page_size = size).await),
            ("page size", "page_size is", queues(stage, |r| r.page_size = size).await),
        ]);
    }
    for token in NO_TOKENS.map(str::to_owned).into_iter().chain([huge()]) {
        let token = || token.clone();
        refused.extend([
            ("token of a run list", "page_token is", runs(stage, |r| r.page_token = token()).await),
            ("token of a history", "page_token is", events(stage, run, |r| r.page_token = token()).await),
            ("token of attempts", "page_token is", attempts(stage, run, |r| r.page_token = token()).await),
            ("token of workers", "page_token is", workers(stage, |r| r.page_token = token()).await),
            ("token of schedules", "page_token is", schedules(stage, |r| r.page_token = token()).await),
            ("token of namespaces", "page_token is", namespaces(stage, |r| r.page_token = token()).await),
            ("token of queues", "page_token is", queues(stage, |r| r.page_token = token()).await),
        ]);
    }
    for name in [long(), huge(), "a\nb".into(), "\u{7f}".into()] {
        let name = || name.clone();
        refused.extend([
            ("namespace of runs", "namespace_id is", runs(stage, |r| r.namespace_id = name()).await),
            ("namespace of events", "namespace_id is", events(stage, run, |r| r.namespace_id = name()).await),
            ("namespace", "namespace_id is", attempts(stage, run, |r| r.namespace_id = name()).await),
            ("namespace of workers", "namespace_id is", workers(stage, |r| r.namespace_id = name()).await),
            (
                "namespace of schedules",
                "namespace_id is",
                schedules(stage, |r| r.namespace_id = name()).await,
            ),
            ("namespace of queues", "namespace_id is", queues(stage, |r| r.namespace_id = name()).await),
            ("type", "workflow_type is", runs(stage, |r| r.workflow_type = name()).await),
            ("queue", "task_queue is", runs(stage, |r| r.task_queue = name()).await),
            ("code", "error_code is", runs(stage, |r| r.error_code = name()).await),
            ("schedule", "schedule_id is", runs(stage, |r| r.schedule_id = name()).await),
            ("business id", "business_id is", runs(stage, |r| r.business_id = name()).await),
            ("prefix", "business_id_prefix is", runs(stage, |r| r.business_id_prefix = name()).await),
            ("label", "labels is", runs(stage, |r| r.labels = labels(&name(), "v")).await),
            ("label value", "labels[k] is", runs(stage, |r| r.labels = labels("k", &name())).await),
            ("queue", "task_queue is", workers(stage, |r| r.task_queue = name()).await),
            ("status", "filter_status is", workers(stage, |r| r.filter_status = name()).await),
            ("type", "workflow_type is", schedules(stage, |r| r.workflow_type = name()).await),
            ("queue", "task_queue is", queues(stage, |r| r.task_queue = name()).await),
        ]);
    }
    for number in [-1, 77, i32::MAX, i32::MIN] {
        refused.extend([
            ("reason", "reason is", runs(stage, |r| r.reason = number).await),
            ("kind", "kinds is", events(stage, run, |r| r.kinds = vec![number]).await),
            ("status of workers", "status is", workers(stage, |r| r.status = number).await),
        ]);
    }
    for (seconds, nanos) in [(i64::MAX, 0), (i64::MIN, 0), (1, -1), (1, 1_000_000_000)] {
        let time = || at(seconds, nanos);
        refused.extend([
            ("time", "created_from is", runs(stage, |r| r.created_from = time()).await),
            ("time", "created_to is", runs(stage, |r| r.created_to = time()).await),
            ("time", "finished_from is", runs(stage, |r| r.finished_from = time()).await),
            ("time", "finished_to is", runs(stage, |r| r.finished_to = time()).await),
            ("time", "from is", events(stage, run, |r| r.from = time()).await),
            ("time", "to is", events(stage, run, |r| r.to = time()).await),
        ]);
    }
    let many: HashMap<_, _> = (0..65).map(|n| (n.to_string(), String::new())).collect();
    refused.extend([
        (
            "range",
            "created_from is",
            runs(stage, |r| (r.created_from, r.created_to) = (at(2, 0), at(1, 0))).await,
        ),
        (
            "range",
            "finished_from is",
            runs(stage, |r| (r.finished_from, r.finished_to) = (at(2, 0), at(1, 0))).await,
        ),
        ("range", "from is", events(stage, run, |r| (r.from, r.to) = (at(2, 0), at(1, 0))).await),
        ("too many labels", "labels is 65", runs(stage, |r| r.labels = many).await),
        ("empty label", "labels is", runs(stage, |r| r.labels = labels("", "v")).await),
        ("status", "statuses is 99", runs(stage, |r| r.statuses = vec![99]).await),
        ("no status", "statuses is 0", runs(stage, |r| r.statuses = vec![0]).await),
        ("order", "order is -7", runs(stage, |r| r.order = -7).await),
        ("step status", "statuses is 60", attempts(stage, run, |r| r.statuses = vec![60]).await),
        ("step", "step_id is", attempts(stage, run, |r| r.step_id = "s".repeat(1_025)).await),
        ("step", "step is", events(stage, run, |r| r.step = "s".repeat(1_025)).await),
        ("step", "step is", events(stage, run, |r| r.step = "a\0".into()).await),
        ("empty kind", "kinds is 0", events(stage, run, |r| r.kinds = vec![0]).await),
        ("no run", "run_id is", events(stage, "", |_| {}).await),
        ("short run", "run_id is", events(stage, "0190", |_| {}).await),
        ("no hex", "run_id is", attempts(stage, "x'; DROP TABLE runs; --", |_| {}).await),
    ]);
    refused
}

#[tokio::test]
async fn bad_lists_are_refused_by_field_value_and_rule() {
    let stage = stage!(Pace::Steady);
    let run = stage.start(&Script::default()).await;

    all_name_their_field(bad_lists(&stage, &run).await);

    assert_eq!(stage.close().await.runs, 1);
}

#[tokio::test]
async fn a_token_is_good_for_its_own_list_and_namespace_only() {
    let stage = stage!(Pace::Steady);
    let run = stage.start(&Script::default()).await;
    let other = stage.start(&Script::default()).await;
    for id in ["a", "b"] {
        let create = schedule(id, |_| {});
        stage.schedules().create_schedule(create).await.unwrap();
        let create = v1::CreateNamespaceRequest { namespace_id: id.into(), ..Default::default() };
        stage.admin().create_namespace(create).await.unwrap();
    }
    let request = v1::ListWorkflowRunsRequest { page_size: 1, ..Default::default() };
    let of_runs = stage.workflows().list_workflow_runs(request).await.unwrap().into_inner().next_page_token;
    let request = v1::ListSchedulesRequest { page_size: 1, ..Default::default() };
    let of_schedules = stage.schedules().list_schedules(request).await.unwrap().into_inner().next_page_token;
    let request = v1::ListNamespacesRequest { page_size: 1, ..Default::default() };
    let of_namespaces = stage.admin().list_namespaces(request).await.unwrap().into_inner().next_page_token;
    let cancel = v1::CancelWorkflowRunRequest { run_id: run.clone(), ..Default::default() };
    stage.workflows().cancel_workflow_run(cancel).await.unwrap();
    let request = v1::ListRunEventsRequest { run_id: run.clone(), page_size: 1, ..Default::default() };
    let of_events = stage.workflows().list_run_events(request).await.unwrap().into_inner().next_page_token;
    for token in [&of_runs, &of_schedules, &of_namespaces, &of_events] {
        assert!(!token.is_empty());
    }

    let token = |token: &String| token.clone();
    let elsewhere = || "a".to_owned();
    all_name_their_field(vec![
        ("runs, elsewhere", "page_token is", {
            runs(&stage, |r| (r.page_token, r.namespace_id) = (token(&of_runs), elsewhere())).await
        }),
        ("runs, filtered", "page_token is", {
            runs(&stage, |r| (r.page_token, r.task_queue) = (token(&of_runs), "q".into())).await
        }),
        ("runs, other way", "page_token is", {
            runs(&stage, |r| (r.page_token, r.ascending) = (token(&of_runs), true)).await
        }),
        ("schedules by a run's", "page_token is", {
            schedules(&stage, |r| r.page_token = token(&of_runs)).await
        }),
        ("workers by a run's", "page_token is", workers(&stage, |r| r.page_token = token(&of_runs)).await),
        (
            "runs by a schedule's",
            "page_token is",
            runs(&stage, |r| r.page_token = token(&of_schedules)).await,
        ),
        ("schedules, elsewhere", "page_token is", {
            schedules(&stage, |r| (r.page_token, r.namespace_id) = (token(&of_schedules), elsewhere())).await
        }),
        ("queues by a namespace's", "page_token is", {
            queues(&stage, |r| r.page_token = token(&of_namespaces)).await
        }),
        ("namespaces by a run's", "page_token is", {
            namespaces(&stage, |r| r.page_token = token(&of_runs)).await
        }),
        ("another run's history", "page_token is", {
            events(&stage, &other, |r| r.page_token = token(&of_events)).await
        }),
        ("attempts by a history's", "page_token is", {
            attempts(&stage, &run, |r| r.page_token = token(&of_events)).await
        }),
    ]);
    runs(&stage, |r| (r.page_token, r.page_size) = (of_runs, 7)).await.expect("its own list, another size");
    stage.close().await;
}
