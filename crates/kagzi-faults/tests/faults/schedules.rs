//! A server with a schedule dies: what it missed is made up for, and nothing runs twice.

use kagzi_faults::{Pace, QUEUE, Script, Stage, eventually, stage};
use kagzi_proto::v1;

fn secondly() -> v1::CreateScheduleRequest {
    let script = serde_json::to_vec(&Script::steps(&["a"])).expect("a script is JSON");
    v1::CreateScheduleRequest {
        schedule_id: "tick".into(),
        spec: Some(v1::ScheduleSpec {
            interval_ms: 1_000,
            workflow_type: "script".into(),
            task_queue: QUEUE.into(),
            input: Some(v1::Payload { data: script.into(), content_type: String::new() }),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// The nominal seconds that have a run.
async fn fired(stage: &Stage) -> Vec<i64> {
    let request =
        v1::ListWorkflowRunsRequest { schedule_id: "tick".into(), page_size: 1000, ..Default::default() };
    let Ok(answer) = stage.workflows().list_workflow_runs(request).await else { return Vec::new() };
    let runs = answer.into_inner().workflow_runs;
    let mut seconds: Vec<_> =
        runs.iter().filter_map(|run| Some(run.scheduled_at.as_ref()?.seconds)).collect();
    seconds.sort_unstable();
    seconds
}

async fn until_fired(stage: &Stage, count: usize) -> Vec<i64> {
    eventually(&format!("{count} runs of the schedule"), async || {
        Some(fired(stage).await).filter(|seconds| seconds.len() >= count)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_makes_up_for_every_second_that_it_missed() {
    let stage = stage!(Pace::Steady);
    let _worker = stage.worker(&[]).await;
    stage.schedules().create_schedule(secondly()).await.expect("a sound schedule");

    for _ in 0..3 {
        let before = until_fired(&stage, 2).await.len();
        stage.kill_server().await;
        stage.restart_server().await;
        until_fired(&stage, before + 2).await;
    }
    let pause = v1::PauseScheduleRequest { schedule_id: "tick".into(), ..Default::default() };
    stage.schedules().pause_schedule(pause).await.expect("the server answers");

    let seconds = fired(&stage).await;
    let (first, last) = (seconds[0], seconds[seconds.len() - 1]);
    assert_eq!(seconds, (first..=last).collect::<Vec<_>>(), "every second, each once");
    eventually("all runs complete", async || {
        let request = v1::ListWorkflowRunsRequest {
            status: v1::WorkflowStatus::Completed.into(),
            page_size: 1000,
            ..Default::default()
        };
        let done = stage.workflows().list_workflow_runs(request).await.ok()?.into_inner().workflow_runs;
        (done.len() == seconds.len()).then_some(())
    })
    .await;
    let found = stage.close().await;
    assert_eq!((found.runs, found.completed), (seconds.len(), seconds.len()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_schedule_is_refused_with_field_place_and_reason() {
    let stage = stage!(Pace::Steady);
    let refused = async |change: fn(&mut v1::ScheduleSpec)| {
        let mut request = secondly();
        let spec = request.spec.as_mut().unwrap();
        (spec.interval_ms, spec.cron) = (0, "* * * * *".into());
        change(spec);
        let status = stage.schedules().create_schedule(request).await.unwrap_err();
        assert_eq!(status.code(), tonic::Code::InvalidArgument, "{status}");
        status.message().to_owned()
    };

    let said = refused(|spec| spec.cron = "0 25 * * *".into()).await;
    assert!(said.contains("\"25\" at character 3, in the field for hours"), "{said}");
    let said = refused(|spec| spec.cron = "0 0 31 2 *".into()).await;
    assert!(said.contains("never comes") && said.contains("character 5"), "{said}");
    let said = refused(|spec| spec.time_zone = "Mars/Base".into()).await;
    assert!(said.contains("Mars/Base"), "{said}");
    let said = refused(|spec| spec.interval_ms = 5_000).await;
    assert!(said.contains("interval_ms") && said.contains("5000"), "{said}");
    let said = refused(|spec| (spec.cron, spec.interval_ms) = (String::new(), 10)).await;
    assert!(said.contains("interval_ms is 10"), "{said}");
    let said = refused(|spec| spec.max_catchup = Some(0)).await;
    assert!(said.contains("max_catchup is 0"), "{said}");
    let said = refused(|spec| spec.jitter_ms = -1).await;
    assert!(said.contains("jitter_ms is -1"), "{said}");
    let said = refused(|spec| spec.overlap = 99).await;
    assert!(said.contains("overlap is 99"), "{said}");
    let said = refused(|spec| drop(spec.labels.insert("a=b".into(), "c".into()))).await;
    assert!(said.contains("labels is \"a=b\": this name has a '='"), "{said}");
    let said = refused(|spec| spec.labels = (0..65).map(|n| (n.to_string(), "x".into())).collect()).await;
    assert!(said.contains("labels is 65") && said.contains("at most 64"), "{said}");
    let said = refused(|spec| spec.workflow_type.clear()).await;
    assert!(said.contains("workflow_type"), "{said}");
    let said = refused(|spec| {
        spec.input = Some(v1::Payload { data: vec![0; (2 << 20) + 1].into(), ..Default::default() })
    })
    .await;
    assert!(said.contains("2097153 bytes") && said.contains("2097152"), "{said}");

    let found = stage.close().await;
    assert_eq!(found.runs, 0);
}
