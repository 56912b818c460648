//! Hostile requests against everything that lists, schedules and administers: each is refused by field, value and what to
//! do instead, nothing is written, and the server works on.

use std::{collections::HashMap, time::Instant};

use kagzi_faults::{Pace, Script, Stage, stage};
use kagzi_proto::v1;
use prost_types::Timestamp;
use tonic::{Code, Status};

use crate::bad_input::{Refused, all_name_their_field};

const RUN: &str = "0190a0b0-0000-7000-8000-000000000000";

/// Texts that are no token of any list.
const NO_TOKENS: [&str; 6] = ["-", "../../etc", "bmV4dDox", "after:default", "\u{0}\u{1b}[2J", "é"];

fn long() -> String {
    "x".repeat(256)
}

fn huge() -> String {
    "x".repeat(60_000)
}

fn at(seconds: i64, nanos: i32) -> Option<Timestamp> {
    Some(Timestamp { seconds, nanos })
}

fn labels(name: &str, value: &str) -> HashMap<String, String> {
    HashMap::from([(name.to_owned(), value.to_owned())])
}

async fn runs(stage: &Stage, change: impl FnOnce(&mut v1::ListWorkflowRunsRequest)) -> Result<(), Status> {
    let mut request = v1::ListWorkflowRunsRequest::default();
    change(&mut request);
    stage.workflows().list_workflow_runs(request).await.map(|_| ())
}

async fn events(
    stage: &Stage,
    run: &str,
    change: impl FnOnce(&mut v1::ListRunEventsRequest),
) -> Result<(), Status> {
    let mut request = v1::ListRunEventsRequest { run_id: run.into(), ..Default::default() };
    change(&mut request);
    stage.workflows().list_run_events(request).await.map(|_| ())
}

async fn attempts(
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
            ("reason", "reason is", runs(stage, |r| r.reason = name()).await),
            ("schedule", "schedule_id is", runs(stage, |r| r.schedule_id = name()).await),
            ("business id", "business_id is", runs(stage, |r| r.business_id = name()).await),
            ("prefix", "business_id_prefix is", runs(stage, |r| r.business_id_prefix = name()).await),
            ("label", "labels is", runs(stage, |r| r.labels = labels(&name(), "v")).await),
            ("label value", "labels[k] is", runs(stage, |r| r.labels = labels("k", &name())).await),
            ("kind", "kinds is", events(stage, run, |r| r.kinds = vec![name()]).await),
            ("queue", "task_queue is", workers(stage, |r| r.task_queue = name()).await),
            ("status", "filter_status is", workers(stage, |r| r.filter_status = name()).await),
            ("type", "workflow_type is", schedules(stage, |r| r.workflow_type = name()).await),
            ("queue", "task_queue is", queues(stage, |r| r.task_queue = name()).await),
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
        ("step status", "statuses is 6", attempts(stage, run, |r| r.statuses = vec![6]).await),
        ("step", "step_id is", attempts(stage, run, |r| r.step_id = "s".repeat(1_025)).await),
        ("step", "step is", events(stage, run, |r| r.step = "s".repeat(1_025)).await),
        ("step", "step is", events(stage, run, |r| r.step = "a\0".into()).await),
        ("empty kind", "kinds is \"\"", events(stage, run, |r| r.kinds = vec![String::new()]).await),
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

fn schedule(id: &str, change: impl FnOnce(&mut v1::ScheduleSpec)) -> v1::CreateScheduleRequest {
    let mut spec = v1::ScheduleSpec {
        cron: "0 0 1 1 *".into(),
        workflow_type: "t".into(),
        task_queue: "q".into(),
        ..Default::default()
    };
    change(&mut spec);
    v1::CreateScheduleRequest { schedule_id: id.into(), spec: Some(spec), ..Default::default() }
}

async fn bad_schedules(stage: &Stage) -> Vec<Refused> {
    let create = async |request| stage.schedules().create_schedule(request).await.map(|_| ());
    let spec = async |change: &dyn Fn(&mut v1::ScheduleSpec)| create(schedule("s", change)).await;
    let next = async |request| stage.schedules().next_schedule_times(request).await.map(|_| ());
    let times = v1::NextScheduleTimesRequest::default;
    let mut refused: Vec<Refused> = Vec::new();
    let garbage = [
        "",
        " ",
        "*",
        "* * * *",
        "* * * * * * * *",
        "@never",
        "@",
        "a b c d e",
        "60 * * * *",
        "*/0 * * * *",
        "1-0 * * * *",
        "* * 31 2 *",
        "* * * * 8",
        "-1 * * * *",
        "* * * * * 1969",
        "0 0 * * * * 99999",
        "1,,2 * * * *",
        "*/999999999999999999999 * * * *",
        "1-99999999999 * * * *",
        "é é é é é",
        "* * * * *\0",
        "\u{1b}[2J * * * *",
        "? ? ? ? ?",
        "L W # L W",
        "* * 1W,L# * *",
        "00000000000000060 * * * *",
    ];
    for cron in garbage.map(str::to_owned).into_iter().chain(["1,".repeat(255) + "x * * * *", huge()]) {
        refused.push(("cron", "spec.cron is", spec(&|spec| spec.cron = cron.clone()).await));
        let asked = schedule("s", |spec| spec.cron = cron.clone()).spec;
        refused.push((
            "cron",
            "spec.cron is",
            next(v1::NextScheduleTimesRequest { spec: asked, ..times() }).await,
        ));
    }
    for zone in ["Mars/Base", "+99:99", "../../etc/passwd", "Europe/Berlin\0", "é"] {
        refused.push(("zone", "spec.time_zone is", spec(&|spec| spec.time_zone = zone.into()).await));
    }
    let every = |interval_ms, phase_ms| {
        move |spec: &mut v1::ScheduleSpec| {
            (spec.cron, spec.interval_ms, spec.phase_ms) = (String::new(), interval_ms, phase_ms);
        }
    };
    for interval in [i64::MIN, -1, 1, 999, i64::MAX] {
        refused.push(("interval", "spec.interval_ms is", spec(&every(interval, 0)).await));
    }
    for phase in [i64::MIN, -1, 1_000, i64::MAX] {
        refused.push(("phase", "spec.phase_ms is", spec(&every(1_000, phase)).await));
    }
    for id in [String::new(), long(), huge(), "a\nb".into(), "x".repeat(161)] {
        let key = || id.clone();
        refused.extend([
            ("id", "schedule_id is", create(schedule(&key(), |_| {})).await),
            ("id", "schedule_id is", get_schedule(stage, &key()).await),
            ("id", "schedule_id is", pause(stage, &key(), String::new()).await),
            ("id", "schedule_id is", backfill(stage, &key(), at(1, 0), None).await),
            ("id", "schedule_id is", trigger(stage, &key(), "").await),
        ]);
    }
    refused.extend([
        (
            "no spec",
            "spec is",
            create(v1::CreateScheduleRequest { spec: None, ..schedule("s", |_| {}) }).await,
        ),
        ("both", "spec.interval_ms is 5000", spec(&|spec| spec.interval_ms = 5_000).await),
        ("overlap", "spec.overlap is 99", spec(&|spec| spec.overlap = 99).await),
        ("overlap", "spec.overlap is -1", spec(&|spec| spec.overlap = -1).await),
        ("jitter", "spec.jitter_ms is -1", spec(&|spec| spec.jitter_ms = -1).await),
        ("jitter", "spec.jitter_ms is", spec(&|spec| spec.jitter_ms = i64::MAX).await),
        ("catch-up", "spec.max_catchup is 0", spec(&|spec| spec.max_catchup = Some(0)).await),
        ("catch-up", "spec.max_catchup is", spec(&|spec| spec.max_catchup = Some(u32::MAX)).await),
        ("no type", "spec.workflow_type is", spec(&|spec| spec.workflow_type.clear()).await),
        ("no queue", "spec.task_queue is", spec(&|spec| spec.task_queue.clear()).await),
        (
            "long note",
            "note is",
            create(v1::CreateScheduleRequest { note: "n".repeat(1_025), ..schedule("s", |_| {}) }).await,
        ),
        ("nothing asked", "schedule_id is", next(times()).await),
        (
            "both asked",
            "schedule_id is",
            next(v1::NextScheduleTimesRequest {
                schedule_id: "s".into(),
                spec: schedule("s", |_| {}).spec,
                ..times()
            })
            .await,
        ),
        (
            "count",
            "count is -1",
            next(v1::NextScheduleTimesRequest { count: -1, spec: schedule("s", |_| {}).spec, ..times() })
                .await,
        ),
        (
            "count",
            "count is 1001",
            next(v1::NextScheduleTimesRequest { count: 1_001, spec: schedule("s", |_| {}).spec, ..times() })
                .await,
        ),
        (
            "after",
            "after is",
            next(v1::NextScheduleTimesRequest {
                after: at(i64::MAX, 0),
                spec: schedule("s", |_| {}).spec,
                ..times()
            })
            .await,
        ),
    ]);
    refused
}

async fn get_schedule(stage: &Stage, id: &str) -> Result<(), Status> {
    let request = v1::GetScheduleRequest { schedule_id: id.into(), ..Default::default() };
    stage.schedules().get_schedule(request).await.map(|_| ())
}

async fn pause(stage: &Stage, id: &str, note: String) -> Result<(), Status> {
    let request = v1::PauseScheduleRequest { schedule_id: id.into(), note, ..Default::default() };
    stage.schedules().pause_schedule(request).await.map(|_| ())
}

async fn trigger(stage: &Stage, id: &str, trigger_id: &str) -> Result<(), Status> {
    let request = v1::TriggerScheduleRequest {
        schedule_id: id.into(),
        trigger_id: trigger_id.into(),
        ..Default::default()
    };
    stage.schedules().trigger_schedule(request).await.map(|_| ())
}

async fn backfill(
    stage: &Stage,
    id: &str,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
) -> Result<(), Status> {
    let request = v1::BackfillScheduleRequest { schedule_id: id.into(), from, to, ..Default::default() };
    stage.schedules().backfill_schedule(request).await.map(|_| ())
}

#[tokio::test]
async fn bad_schedules_are_refused_by_field_value_and_rule_and_make_nothing() {
    let stage = stage!(Pace::Steady);

    all_name_their_field(bad_schedules(&stage).await);
    let there = stage.schedules().list_schedules(v1::ListSchedulesRequest::default()).await.unwrap();
    assert_eq!(there.into_inner().schedules, []);

    stage.schedules().create_schedule(schedule("s", |spec| spec.cron = "* * * * * *".into())).await.unwrap();
    pause(&stage, "s", "before it fires".into()).await.unwrap();
    let began = Instant::now();
    all_name_their_field(vec![
        ("long note", "note is", pause(&stage, "s", "n".repeat(1_025)).await),
        ("long trigger", "trigger_id is", trigger(&stage, "s", &"t".repeat(65)).await),
        ("control in trigger", "trigger_id is", trigger(&stage, "s", "\n").await),
        ("no range", "from is", backfill(&stage, "s", None, None).await),
        ("range before time", "from is", backfill(&stage, "s", at(-60_000_000_000, 0), None).await),
        ("range of no time", "from is", backfill(&stage, "s", at(5, 0), at(5, 0)).await),
        ("range the wrong way", "from is", backfill(&stage, "s", at(6, 0), at(5, 0)).await),
        ("future", "to is", backfill(&stage, "s", at(1, 0), at(60_000_000_000, 0)).await),
        ("a billion times", "range", backfill(&stage, "s", at(0, 0), None).await),
    ]);
    assert!(began.elapsed().as_secs() < 30, "none of them kept the server busy: {:?}", began.elapsed());
    // The ends of the calendar are asked about, not computed for ever.
    for seconds in [-377_705_116_800, -1, 253_402_207_200, 9_000_000_000_000] {
        let spec = schedule("s", |spec| spec.cron = "0 0 29 2 1 2096".into()).spec;
        let request = v1::NextScheduleTimesRequest { spec, after: at(seconds, 0), ..Default::default() };
        stage.schedules().next_schedule_times(request).await.map(|_| ()).or_else(refused_well).unwrap();
    }
    stage.close().await;
}

/// A refusal of the input is as good as an answer; anything else is not.
fn refused_well(status: Status) -> Result<(), Status> {
    if status.code() == Code::InvalidArgument { Ok(()) } else { Err(status) }
}

async fn bad_administration(stage: &Stage) -> Vec<Refused> {
    let create = async |request| stage.admin().create_namespace(request).await.map(|_| ());
    let update = async |request| stage.admin().update_namespace(request).await.map(|_| ());
    let with = async |change: &dyn Fn(&mut v1::NamespaceValues)| {
        let mut values = v1::NamespaceValues::default();
        change(&mut values);
        let values = Some(values);
        create(v1::CreateNamespaceRequest { namespace_id: "n".into(), values: values.clone() }).await?;
        update(v1::UpdateNamespaceRequest { namespace_id: "default".into(), values, clear: vec![] }).await
    };
    let pause = async |request| stage.admin().pause_queue(request).await.map(|_| ());
    let limit = async |request| stage.admin().limit_queue(request).await.map(|_| ());
    let resume = async |request| stage.admin().resume_queue(request).await.map(|_| ());
    let mut refused: Vec<Refused> = Vec::new();
    for name in [long(), huge(), "a\nb".into(), "\u{0}".into()] {
        let name = || name.clone();
        let namespace = || v1::PauseQueueRequest { namespace_id: name(), ..Default::default() };
        let disable = v1::DisableNamespaceRequest { namespace_id: name(), ..Default::default() };
        let enable = v1::EnableNamespaceRequest { namespace_id: name() };
        let get = v1::GetNamespaceRequest { namespace_id: name() };
        let clear =
            v1::UpdateNamespaceRequest { clear: vec![name()], ..v1::UpdateNamespaceRequest::default() };
        refused.extend([
            ("name", "namespace_id is", {
                create(v1::CreateNamespaceRequest { namespace_id: name(), values: None }).await
            }),
            ("name", "namespace_id is", stage.admin().get_namespace(get).await.map(|_| ())),
            ("name", "namespace_id is", stage.admin().disable_namespace(disable).await.map(|_| ())),
            ("name", "namespace_id is", stage.admin().enable_namespace(enable).await.map(|_| ())),
            ("name", "namespace_id is", pause(namespace()).await),
            ("field", "clear is", update(clear).await),
            ("queue", "task_queue is", {
                pause(v1::PauseQueueRequest { task_queue: name(), ..Default::default() }).await
            }),
            ("queue", "task_queue is", {
                resume(v1::ResumeQueueRequest { task_queue: name(), ..Default::default() }).await
            }),
            ("queue", "task_queue is", {
                limit(v1::LimitQueueRequest { task_queue: name(), ..Default::default() }).await
            }),
            ("type", "workflow_type is", {
                let task_queue = "q".to_owned();
                pause(v1::PauseQueueRequest { task_queue, workflow_type: name(), ..Default::default() }).await
            }),
            ("who", "by is", pause(v1::PauseQueueRequest { by: name(), ..Default::default() }).await),
            ("handler", "failure_handler_queue is", with(&|v| v.failure_handler_queue = Some(name())).await),
        ]);
    }
    let policy =
        |policy: v1::RetryPolicy| move |v: &mut v1::NamespaceValues| v.retry_policy = Some(policy.clone());
    let times = |times: v1::TimeoutConfig| move |v: &mut v1::NamespaceValues| v.timeouts = Some(times);
    refused.extend([
        ("no name", "namespace_id is", create(v1::CreateNamespaceRequest::default()).await),
        ("description", "description is", with(&|v| v.description = Some("d".repeat(4_097))).await),
        ("no retention", "retention_ms is 0", with(&|v| v.retention_ms = Some(0)).await),
        ("retention", "retention_ms is -1", with(&|v| v.retention_ms = Some(-1)).await),
        ("retention", "retention_ms is", with(&|v| v.retention_ms = Some(i64::MAX)).await),
        ("limit", "max_concurrent is 0", with(&|v| v.max_concurrent = Some(0)).await),
        ("limit", "max_concurrent is", with(&|v| v.max_concurrent = Some(u32::MAX)).await),
        (
            "no handler",
            "failure_handler_queue is",
            with(&|v| v.failure_handler_queue = Some("".into())).await,
        ),
        ("policy", "retry_policy", {
            with(&policy(v1::RetryPolicy { maximum_attempts: Some(0), ..Default::default() })).await
        }),
        ("policy", "retry_policy.backoff is -5", {
            with(&policy(v1::RetryPolicy { backoff: -5, ..Default::default() })).await
        }),
        ("policy", "retry_policy.preset is", {
            with(&policy(v1::RetryPolicy { preset: "HOPE".into(), ..Default::default() })).await
        }),
        ("timeouts", "start_to_close_timeout_seconds is 0", {
            with(&times(v1::TimeoutConfig { start_to_close_timeout_seconds: Some(0), ..Default::default() }))
                .await
        }),
        ("type without queue", "workflow_type is", {
            pause(v1::PauseQueueRequest { workflow_type: "t".into(), ..Default::default() }).await
        }),
        ("type without queue", "workflow_type is", {
            limit(v1::LimitQueueRequest { workflow_type: "t".into(), ..Default::default() }).await
        }),
        ("limit of none", "max_concurrent is 0", {
            limit(v1::LimitQueueRequest { max_concurrent: Some(0), ..Default::default() }).await
        }),
        ("limit of all", "max_concurrent is", {
            limit(v1::LimitQueueRequest { max_concurrent: Some(u32::MAX), ..Default::default() }).await
        }),
        ("note", "note is", {
            pause(v1::PauseQueueRequest { note: "n".repeat(1_025), ..Default::default() }).await
        }),
        ("note", "note is", {
            let request = v1::DisableNamespaceRequest { note: "n".repeat(1_025), ..Default::default() };
            stage.admin().disable_namespace(request).await.map(|_| ())
        }),
    ]);
    refused
}

#[tokio::test]
async fn bad_administration_is_refused_by_field_value_and_rule_and_changes_nothing() {
    let stage = stage!(Pace::Steady);
    let before = state(&stage).await;

    all_name_their_field(bad_administration(&stage).await);

    assert_eq!(state(&stage).await, before);
    let _worker = stage.worker(&[]).await;
    let run = stage.start(&Script::steps(&["a"])).await;
    stage.completed(&run).await;
    stage.close().await;
}

/// Everything that an operator can set.
async fn state(stage: &Stage) -> (v1::ListNamespacesResponse, v1::ListQueuesResponse) {
    let namespaces = stage.admin().list_namespaces(v1::ListNamespacesRequest::default()).await.unwrap();
    let queues = stage.admin().list_queues(v1::ListQueuesRequest::default()).await.unwrap();
    (namespaces.into_inner(), queues.into_inner())
}

#[tokio::test]
async fn what_is_not_there_is_named_with_where_to_look() {
    let stage = stage!(Pace::Steady);
    let run = stage.start(&Script::default()).await;
    let worker = || RUN.to_owned();
    let nowhere = || "nowhere".to_owned();
    let get = v1::GetWorkerRequest { worker_id: worker(), ..Default::default() };
    let drain = v1::DrainWorkerRequest { worker_id: worker(), ..Default::default() };
    let offline = v1::TakeWorkerOfflineRequest { worker_id: "01900000".into(), ..Default::default() };
    let attempt =
        v1::GetStepAttemptRequest { run_id: run.clone(), step_id: "s".into(), ..Default::default() };
    let update = v1::UpdateScheduleRequest {
        schedule_id: "none".into(),
        spec: schedule("none", |_| {}).spec,
        ..Default::default()
    };
    let delete = v1::DeleteScheduleRequest { schedule_id: "none".into(), ..Default::default() };
    let resume = v1::ResumeScheduleRequest { schedule_id: "none".into(), ..Default::default() };
    let next = v1::NextScheduleTimesRequest { schedule_id: "none".into(), ..Default::default() };
    let change = v1::UpdateNamespaceRequest { namespace_id: nowhere(), ..Default::default() };
    let disable = v1::DisableNamespaceRequest { namespace_id: nowhere(), ..Default::default() };
    let enable = v1::EnableNamespaceRequest { namespace_id: nowhere() };
    let one = v1::GetNamespaceRequest { namespace_id: nowhere() };
    let answers: Vec<(&str, Result<(), Status>)> = vec![
        (RUN, events(&stage, RUN, |_| {}).await),
        (RUN, attempts(&stage, RUN, |_| {}).await),
        ("01900000", events(&stage, "01900000", |_| {}).await),
        (&run, events(&stage, &run, |r| r.namespace_id = nowhere()).await),
        ("'s'", stage.workflows().get_step_attempt(attempt).await.map(|_| ())),
        (RUN, stage.registry().get_worker(get).await.map(|_| ())),
        (RUN, stage.registry().drain_worker(drain).await.map(|_| ())),
        ("01900000", stage.registry().take_worker_offline(offline).await.map(|_| ())),
        ("'none'", get_schedule(&stage, "none").await),
        ("'none'", pause(&stage, "none", String::new()).await),
        ("'none'", trigger(&stage, "none", "").await),
        ("'none'", backfill(&stage, "none", at(1, 0), at(60, 0)).await),
        ("'none'", stage.schedules().update_schedule(update).await.map(|_| ())),
        ("'none'", stage.schedules().delete_schedule(delete).await.map(|_| ())),
        ("'none'", stage.schedules().resume_schedule(resume).await.map(|_| ())),
        ("'none'", stage.schedules().next_schedule_times(next).await.map(|_| ())),
        ("'nowhere'", stage.admin().get_namespace(one).await.map(|_| ())),
        ("'nowhere'", stage.admin().update_namespace(change).await.map(|_| ())),
        ("'nowhere'", stage.admin().disable_namespace(disable).await.map(|_| ())),
        ("'nowhere'", stage.admin().enable_namespace(enable).await.map(|_| ())),
    ];

    for (number, (value, answer)) in answers.into_iter().enumerate() {
        let missing = answer.expect_err("it is not there");
        assert_eq!(missing.code(), Code::NotFound, "{number}: {missing}");
        assert!(missing.message().contains(value), "{number}: {value} is not named in: {missing}");
        assert!(missing.message().contains("with: kagzi "), "{number}: no next step in: {missing}");
    }
    stage.close().await;
}
