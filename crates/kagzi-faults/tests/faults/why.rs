//! Every run can say why it is where it is.

use kagzi_faults::{Move, Pace, Script, eventually, stage};
use kagzi_proto::v1::{self, WorkflowStatus};

const HOUR_MS: u64 = 3_600_000;

#[tokio::test]
async fn a_run_says_in_one_true_sentence_why_it_is_where_it_is() {
    let stage = stage!(Pace::Steady);

    let run = stage.start(&Script::default().gated("charge")).await;
    let ready = stage.explain(&run).await;
    let worker = stage.worker(&[]).await;
    stage.began(&run, "charge", 1).await;
    // That a step began is told, not waited for: the server may hear of it a moment later than the step's
    // code.
    let leased = eventually("the server hears of the step", async || {
        Some(stage.explain(&run).await).filter(|told| told.sentence.contains("running step"))
    })
    .await;
    stage.log.open_gate("charge");
    stage.completed(&run).await;
    let finished = stage.explain(&run).await;
    let sleeper = stage.start(&Script::default().then(Move::Sleep { ms: HOUR_MS })).await;
    stage.until(&sleeper, WorkflowStatus::Sleeping).await;
    let asleep = stage.explain(&sleeper).await;

    assert_eq!(ready.reason(), v1::WaitReason::Ready);
    assert!(ready.sentence.ends_with("no worker is online on queue 'faults'"), "{}", ready.sentence);
    assert_eq!(leased.reason(), v1::WaitReason::Leased);
    assert!(leased.sentence.contains("executes it since"), "{}", leased.sentence);
    assert!(leased.sentence.contains("running step 'charge' (attempt 1)"), "{}", leased.sentence);
    assert_eq!(finished.reason(), v1::WaitReason::Unspecified);
    assert!(finished.sentence.starts_with("it completed at 2"), "{}", finished.sentence);
    assert_eq!(asleep.reason(), v1::WaitReason::Timer);
    assert!(asleep.sentence.contains("sleeps in 'sleep' until 2"), "{}", asleep.sentence);
    drop(worker);
    stage.close().await;
}
