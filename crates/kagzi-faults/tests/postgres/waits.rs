//! Waiting at one server for a run that another one ends.

use std::time::{Duration, Instant};

use kagzi_faults::{Pace, Script, Stage, stage};
use kagzi_proto::v1::WaitWorkflowRunRequest;
use kagzi_store_postgres::fixture;

use crate::turn;

/// As long as a server waits for one that cannot hear of the end. The hint takes milliseconds, a look of its
/// own a second.
const WAIT_MS: i64 = 20_000;

async fn waited(stage: &Stage, run: &str) -> Duration {
    let request = WaitWorkflowRunRequest { run_id: run.into(), timeout_ms: WAIT_MS, ..Default::default() };
    let began = Instant::now();
    let answer = stage.workflows().wait_workflow_run(request).await.expect("a run can be waited for");
    assert!(answer.into_inner().finished, "run {run} has ended");
    began.elapsed()
}

/// A run that was started at one server and ends through the other: whether the wait began before or after
/// the end, it is answered long before its time is over.
async fn an_end_elsewhere_is_heard(settings: &str) {
    let url = fixture::database().await;
    let one = stage!(Pace::Steady, format!("{url}{settings}"));
    let two = one.sibling().await;
    let _worker = two.worker(&[]).await;

    let before = one.start(&Script::default().gated("gate")).await;
    one.began(&before, "gate", 1).await;
    let (heard, ()) = tokio::join!(waited(&one, &before), async { one.log.open_gate("gate") });
    let after = one.start(&Script::steps(&["a"])).await;
    two.completed(&after).await;
    let found = waited(&one, &after).await;

    let late = Duration::from_millis(WAIT_MS as u64 / 2);
    assert!(heard < late && found < late, "heard after {heard:?} and {found:?}");
    two.kill_server().await;
    let found = one.close_on(&url).await;
    assert_eq!((found.runs, found.completed), (2, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_run_is_heard_at_the_server_that_started_it() {
    let _turn = turn().await;
    an_end_elsewhere_is_heard("").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_notifications_the_end_of_a_run_is_found_at_the_server_that_started_it() {
    let _turn = turn().await;
    an_end_elsewhere_is_heard("?notify=off").await;
}
