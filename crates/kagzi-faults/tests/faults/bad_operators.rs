//! Hostile requests against everything that lists, schedules and administers: each is refused by field, value
//! and what to do instead, nothing is written, and the server works on.

mod administration;
mod lists;
mod schedules;

use std::collections::HashMap;

use kagzi_faults::{Pace, Script, stage};
use kagzi_proto::v1;
use prost_types::Timestamp;
use tonic::{Code, Status};

use lists::{attempts, events};
use schedules::{backfill, get_schedule, pause, schedule, trigger};

pub const RUN: &str = "0190a0b0-0000-7000-8000-000000000000";

/// Texts that are no token of any list.
pub const NO_TOKENS: [&str; 6] = ["-", "../../etc", "bmV4dDox", "after:default", "\u{0}\u{1b}[2J", "é"];

pub fn long() -> String {
    "x".repeat(256)
}

pub fn huge() -> String {
    "x".repeat(60_000)
}

pub fn at(seconds: i64, nanos: i32) -> Option<Timestamp> {
    Some(Timestamp { seconds, nanos })
}

pub fn labels(name: &str, value: &str) -> HashMap<String, String> {
    HashMap::from([(name.to_owned(), value.to_owned())])
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
