//! Runs whose time is over.

use kagzi_faults::{Move, Pace, Phase, Script, Stage, StepPlan, stage, start_request};
use kagzi_proto::v1::{StartWorkflowRequest, TimeoutConfig, WorkflowRun, WorkflowStatus};

const HOUR_MS: u64 = 3_600_000;
/// Within the default retry budget of a run.
const TEN_MINUTES_MS: u64 = 600_000;

/// A start that must be over within a second.
fn one_second(workflow_type: &str, script: &Script) -> StartWorkflowRequest {
    let timeouts = TimeoutConfig { execution_timeout_seconds: Some(1), ..Default::default() };
    StartWorkflowRequest { timeouts: Some(timeouts), ..start_request(workflow_type, script) }
}

async fn timed_out(stage: &Stage, run: &str) {
    let ended = stage.finished(run).await;
    assert_eq!(ended.status(), WorkflowStatus::TimedOut);
    assert_eq!(ended.error.as_ref().unwrap().code, "TIMED_OUT");
    let late_ms = late_ms(&ended);
    assert!((0..2_000).contains(&late_ms), "{late_ms} ms after the deadline");
}

fn late_ms(run: &WorkflowRun) -> i64 {
    let ms =
        |at: Option<prost_types::Timestamp>| at.map(|at| at.seconds * 1000 + i64::from(at.nanos) / 1_000_000);
    ms(run.finished_at).expect("it has ended") - ms(run.deadline_at).expect("it had a deadline")
}

#[tokio::test]
async fn a_deadline_ends_a_run_promptly_whatever_it_waits_for() {
    let stage = stage!(Pace::Fast);
    let _worker = stage.worker(&["--max-concurrent", "2"]).await;
    let fails =
        StepPlan { name: "flaky".into(), failures: 9, retry_ms: Some(TEN_MINUTES_MS), ..StepPlan::default() };
    let start = async |request| stage.start_with(request).await.unwrap().run_id;

    let queued = start(one_second("unknown", &Script::steps(&["never"]))).await;
    let asleep = Script::default().then(Move::Sleep { ms: HOUR_MS }).step("never");
    let sleeping = start(one_second("script", &asleep)).await;
    let retrying = start(one_second("script", &Script::default().planned(fails).step("never"))).await;
    let running = start(one_second("script", &Script::default().gated("charge").step("never"))).await;
    let all = [&queued, &sleeping, &retrying, &running];
    for run in all {
        timed_out(&stage, run).await;
    }
    // The news that the run is lost goes down the stream before the next run does; only then the gate opens.
    for opened in [false, true] {
        let next = stage.start(&Script::steps(&["a", "b"])).await;
        stage.completed(&next).await;
        if !opened {
            stage.log.open_gate("charge");
        }
    }

    for run in all {
        assert_eq!(stage.log.began(run, "never"), []);
    }
    assert_eq!(stage.log.of(&running, "charge", Phase::Ended), [], "the worker was told to stop");
    stage.close().await;
}

#[tokio::test]
async fn a_deadline_that_passed_while_the_server_was_dead_is_kept_after_its_return() {
    let stage = stage!(Pace::Fast);
    let run = stage.start_with(one_second("unknown", &Script::default())).await.unwrap().run_id;
    let deadline = stage.run(&run).await.deadline_at.expect("it has one");

    stage.kill_server().await;
    kagzi_faults::eventually("the deadline passes", async || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        (now > deadline.seconds.cast_unsigned() + 1).then_some(())
    })
    .await;
    stage.restart_server().await;

    assert_eq!(stage.finished(&run).await.status(), WorkflowStatus::TimedOut);
    stage.close().await;
}
