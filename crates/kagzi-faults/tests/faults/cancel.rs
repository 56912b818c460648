//! Cancelling a run, whatever it waits for.

use futures_util::future;
use kagzi_faults::{Move, Pace, Phase, Script, StepPlan, stage, start_request};
use kagzi_proto::v1::{self, WorkflowStatus};
use tonic::Code;

const HOUR_MS: u64 = 3_600_000;
/// Within the default retry budget of a run.
const TEN_MINUTES_MS: u64 = 600_000;

#[tokio::test]
async fn a_cancelled_run_stops_in_mid_step_and_begins_no_other() {
    let stage = stage!(Pace::Steady);
    let _worker = stage.worker(&["--max-concurrent", "1"]).await;
    let run = stage.start(&Script::default().gated("charge").step("ship")).await;
    stage.began(&run, "charge", 1).await;

    let answer = stage.cancel(&run).await.unwrap();
    // The only slot is free again, so the step's future is gone.
    let next = stage.start(&Script::steps(&["next"])).await;
    stage.completed(&next).await;
    stage.log.open_gate("charge");
    // Long enough that a step that still waited would have seen the open gate.
    let later = stage.start(&Script::default().then(Move::Sleep { ms: 200 }).step("later")).await;
    stage.completed(&later).await;

    assert_eq!((answer.status(), answer.already_cancelled), (WorkflowStatus::Cancelled, false));
    assert_eq!(stage.run(&run).await.status(), WorkflowStatus::Cancelled);
    assert_eq!(stage.log.of(&run, "charge", Phase::Ended), []);
    assert_eq!(stage.log.began(&run, "ship"), []);
    assert!(stage.cancel(&run).await.unwrap().already_cancelled, "a repeat is told so");
    stage.close().await;
}

#[tokio::test]
async fn a_run_can_be_cancelled_while_it_sleeps_waits_or_retries() {
    let stage = stage!(Pace::Steady);
    let worker = stage.worker(&[]).await;
    let fails =
        StepPlan { name: "flaky".into(), failures: 9, retry_ms: Some(TEN_MINUTES_MS), ..StepPlan::default() };
    let sleeping = stage.start(&Script::default().then(Move::Sleep { ms: HOUR_MS }).step("never")).await;
    let retrying = stage.start(&Script::default().planned(fails).step("never")).await;
    let request = start_request("unknown", &Script::steps(&["never"]));
    let queued = stage.start_with(request).await.unwrap().run_id;
    stage.until(&sleeping, WorkflowStatus::Sleeping).await;
    kagzi_faults::eventually("the retry is scheduled", async || {
        (stage.run(&retrying).await.reason() == v1::WaitReason::Retry).then_some(())
    })
    .await;

    for run in [&sleeping, &retrying, &queued] {
        let answer = stage.cancel(run).await.unwrap();

        assert_eq!(answer.status(), WorkflowStatus::Cancelled);
        let seen = stage.run(run).await;
        assert_eq!((seen.status(), seen.reason()), (WorkflowStatus::Cancelled, v1::WaitReason::Unspecified));
        assert!(seen.wake_up_at.is_none(), "nothing wakes it any more");
        assert_eq!(stage.log.began(run, "never"), []);
    }
    drop(worker);
    stage.close().await;
}

#[tokio::test]
async fn when_cancel_races_completion_one_wins_and_the_other_is_told() {
    let stage = stage!(Pace::Steady);
    let _worker = stage.worker(&[]).await;
    let mut runs = Vec::new();
    for _ in 0..40 {
        runs.push(stage.start(&Script::default().gated("race")).await);
    }
    for run in &runs {
        stage.began(run, "race", 1).await;
    }

    stage.log.open_gate("race");
    let answers = future::join_all(runs.iter().map(|run| stage.cancel(run))).await;

    for (run, answer) in runs.iter().zip(answers) {
        let ended = stage.finished(run).await;
        match answer {
            Ok(answer) => {
                assert_eq!(answer.status(), WorkflowStatus::Cancelled);
                assert_eq!(ended.status(), WorkflowStatus::Cancelled);
            }
            Err(refusal) => {
                assert_eq!(refusal.code(), Code::FailedPrecondition, "{refusal}");
                assert!(refusal.message().contains("already ended as COMPLETED"), "{refusal}");
                assert_eq!(ended.status(), WorkflowStatus::Completed);
            }
        }
    }
    stage.close().await;
}

#[tokio::test]
async fn a_completion_after_the_cancel_is_told_that_the_run_has_ended() {
    let stage = stage!(Pace::Steady);
    let worker = stage.hand_worker("by-hand").await;
    let run = stage.start_with(start_request("by-hand", &Script::default())).await.unwrap().run_id;
    let held = worker.poll(5_000).await.expect("a run");

    stage.cancel(&run).await.unwrap();
    let told = worker.beat(&[&held]).await.unwrap();
    let refusal = worker.complete(&held, "late").await.unwrap_err();

    assert!(told.lost[0].cancelled, "the heartbeat tells");
    assert_eq!(refusal.code(), Code::FailedPrecondition);
    assert!(refusal.message().contains("already ended as CANCELLED"), "{refusal}");
    assert_eq!(stage.run(&run).await.output, None);
    stage.close().await;
}
