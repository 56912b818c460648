//! A schedule on two servers, one of which is killed half way: every second has its run, and one only.

use kagzi_faults::{Pace, QUEUE, Script, Stage, eventually_within, stage};
use kagzi_proto::v1;
use kagzi_store_postgres::fixture;

use crate::{addresses, count, turn};
use std::time::Duration;

const SECONDS: usize = 60;
const PATIENCE: Duration = Duration::from_secs(240);

/// Fires every second, by a cron expression of six fields.
fn secondly(id: &str) -> v1::CreateScheduleRequest {
    let script = serde_json::to_vec(&Script::steps(&["a"])).expect("a script is JSON");
    v1::CreateScheduleRequest {
        schedule_id: id.into(),
        spec: Some(v1::ScheduleSpec {
            cron: "* * * * * *".into(),
            workflow_type: "script".into(),
            task_queue: QUEUE.into(),
            input: Some(v1::Payload { data: script.into(), content_type: String::new() }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// The runs of the schedule, oldest nominal time first: (nominal second, how late it was in milliseconds).
async fn fired(stage: &Stage) -> Vec<(i64, i64)> {
    let request =
        v1::ListWorkflowRunsRequest { schedule_id: "tick".into(), page_size: 1000, ..Default::default() };
    let Ok(answer) = stage.workflows().list_workflow_runs(request).await else { return Vec::new() };
    let micros = |at: &prost_types::Timestamp| at.seconds * 1_000_000 + i64::from(at.nanos) / 1000;
    let mut times: Vec<_> = answer
        .into_inner()
        .workflow_runs
        .iter()
        .map(|run| {
            let (nominal, began) = (run.scheduled_at.as_ref().unwrap(), run.created_at.as_ref().unwrap());
            (nominal.seconds, (micros(began) - micros(nominal)) / 1000)
        })
        .collect();
    times.sort_unstable();
    times
}

async fn until_fired(stage: &Stage, count: usize) {
    eventually_within(PATIENCE, &format!("{count} runs of the schedule"), async || {
        (fired(stage).await.len() >= count).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schedule_fires_once_per_second_for_a_minute_although_its_server_is_killed_half_way() {
    let _turn = turn().await;
    let url = fixture::database().await;
    let one = stage!(Pace::Calm, url.clone());
    let two = one.sibling().await;
    let _worker = two.worker_at(addresses(&two, &one), &[]).await;
    one.schedules().create_schedule(secondly("tick")).await.expect("a sound schedule");

    until_fired(&one, SECONDS / 2).await;
    one.kill_server().await;
    until_fired(&two, SECONDS).await;
    let pause = v1::PauseScheduleRequest { schedule_id: "tick".into(), ..Default::default() };
    two.schedules().pause_schedule(pause).await.expect("the other server answers");

    let times = fired(&two).await;
    let (first, last) = (times[0].0, times[times.len() - 1].0);
    let seconds: Vec<i64> = times.iter().map(|(second, _)| *second).collect();
    assert_eq!(seconds, (first..=last).collect::<Vec<_>>(), "every second, each once");
    assert!(times.iter().all(|(_, late_ms)| *late_ms >= 0), "none early: {times:?}");
    let mut late: Vec<i64> = times.iter().map(|(_, late_ms)| *late_ms).collect();
    late.sort_unstable();
    println!(
        "late by ms: median {}, 90% {}, worst {}",
        late[late.len() / 2],
        late[late.len() * 9 / 10],
        late[late.len() - 1]
    );
    // On a quiet machine 100 ms hold for each; on a busy one, and over the death of a server, at least for
    // most.
    assert!(late[late.len() / 2] < 100, "{late:?}");
    eventually_within(PATIENCE, "all runs complete", async || {
        let open = count(&url, "SELECT count(*) FROM kagzi.runs WHERE status < 4").await?;
        (open == 0).then_some(())
    })
    .await;
    two.kill_server().await;
    let found = one.close().await;
    assert_eq!((found.runs, found.completed), (times.len(), times.len()));
}
