//! Everything that makes, changes and fires schedules.

use std::time::Instant;

use kagzi_faults::{Pace, Stage, stage};
use kagzi_proto::v1;
use prost_types::Timestamp;
use tonic::{Code, Status};

use super::{at, huge, long};
use crate::bad_input::{Refused, all_name_their_field};

pub fn schedule(id: &str, change: impl FnOnce(&mut v1::ScheduleSpec)) -> v1::CreateScheduleRequest {
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
        "1-60 * * * *",
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

pub async fn get_schedule(stage: &Stage, id: &str) -> Result<(), Status> {
    let request = v1::GetScheduleRequest { schedule_id: id.into(), ..Default::default() };
    stage.schedules().get_schedule(request).await.map(|_| ())
}

pub async fn pause(stage: &Stage, id: &str, note: String) -> Result<(), Status> {
    let request = v1::PauseScheduleRequest { schedule_id: id.into(), note, ..Default::default() };
    stage.schedules().pause_schedule(request).await.map(|_| ())
}

pub async fn trigger(stage: &Stage, id: &str, trigger_id: &str) -> Result<(), Status> {
    let request = v1::TriggerScheduleRequest {
        schedule_id: id.into(),
        trigger_id: trigger_id.into(),
        ..Default::default()
    };
    stage.schedules().trigger_schedule(request).await.map(|_| ())
}

pub async fn backfill(
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
