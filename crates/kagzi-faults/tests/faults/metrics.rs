//! What is counted is what happened.

use kagzi_faults::{Move, Pace, Script, StepPlan, stage};
use kagzi_proto::v1::WorkflowStatus;

#[tokio::test]
async fn the_numbers_on_the_page_are_those_of_what_happened() {
    let stage = stage!(Pace::Brisk);
    let first = stage.worker(&[]).await;

    let plain = stage.start(&Script::steps(&["a"])).await;
    stage.completed(&plain).await;
    let flaky = StepPlan { name: "flaky".into(), failures: 2, retry_ms: Some(10), ..StepPlan::default() };
    let retried = stage.start(&Script::default().planned(flaky)).await;
    stage.completed(&retried).await;
    let slept = stage.start(&Script::default().then(Move::Sleep { ms: 50 })).await;
    stage.completed(&slept).await;
    let broken =
        StepPlan { name: "broken".into(), failures: 9, attempts_max: Some(1), ..StepPlan::default() };
    let failed = stage.start(&Script::default().planned(broken)).await;
    stage.until(&failed, WorkflowStatus::Failed).await;
    let cancelled = stage.start(&Script::default().gated("never")).await;
    stage.began(&cancelled, "never", 1).await;
    stage.cancel(&cancelled).await.unwrap();
    let lost = stage.start(&Script::default().gated("held")).await;
    stage.began(&lost, "held", 1).await;
    first.kill().await;
    let _second = stage.worker(&[]).await;
    stage.began(&lost, "held", 2).await;
    stage.log.open_gate("held");
    stage.completed(&lost).await;

    let waits = stage.start(&Script::default().then(Move::Signal { channel: "item".into() })).await;
    stage.until(&waits, WorkflowStatus::Sleeping).await;

    let count = async |name: &str| stage.metric(name).await as u64;
    let ended =
        async |outcome: &str| count(&format!("kagzi_runs_finished_total{{outcome=\"{outcome}\"}}")).await;
    assert_eq!((ended("COMPLETED").await, ended("FAILED").await, ended("CANCELLED").await), (4, 1, 1));
    assert_eq!(count("kagzi_step_retries_total").await, 2);
    // One by the cancel, one by the death of the worker.
    assert_eq!(count("kagzi_leases_lost_total").await, 2);
    // Seven starts, two retries, one wake-up, one takeover.
    assert_eq!(count("kagzi_leases_total").await, 11);
    // Waits for a worker that began with a start; those that began with a timer are counted apart.
    assert_eq!(count("kagzi_schedule_to_start_seconds_count").await, 7);
    assert_eq!(count("kagzi_timer_lag_seconds_count").await, 4, "two retries, the sleep and the takeover");
    let open = |kind: &str| format!("kagzi_waits_open{{namespace=\"default\",kind=\"{kind}\"}}");
    assert_eq!(count(&open("signal")).await, 1);
    let (commits, commands) = (count("kagzi_commits_total").await, count("kagzi_commands_total").await);
    assert!(0 < commits && commits <= count("kagzi_commands_per_commit_count").await + 1, "{commits}");
    assert_eq!(count("kagzi_commands_per_commit_sum").await, commands);
    stage.close().await;
}
