//! Waiting at one server for a run that another one ends.

use std::time::{Duration, Instant};

use kagzi_faults::{Pace, Script, Stage, eventually, stage};
use kagzi_proto::v1::WaitWorkflowRunRequest;
use kagzi_store_postgres::fixture;

use crate::{count, turn};

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

/// Transactions that the database has ended so far, all reads among them.
async fn transactions(url: &str) -> i64 {
    const ENDED: &str =
        "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()";
    count(url, ENDED).await.expect("the database is there")
}

/// How many of them there are in some seconds.
async fn transactions_within(url: &str, long: Duration) -> i64 {
    let (before, began) = (transactions(url).await, Instant::now());
    eventually("some seconds go by", async || (began.elapsed() > long).then_some(())).await;
    transactions(url).await - before
}

/// One look a second is made for all waiters together, and only because there is another server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_reads_for_those_who_wait_does_not_grow_with_their_number() {
    const WAITERS: usize = 300;
    const LONG: Duration = Duration::from_secs(4);
    let _turn = turn().await;
    let url = fixture::database().await;
    let one = stage!(Pace::Calm, url.clone());
    let two = one.sibling().await;
    // Nobody executes them: whoever waits, waits.
    let mut runs = Vec::new();
    for _ in 0..WAITERS {
        runs.push(one.start(&Script::steps(&["a"])).await);
    }
    let nobody_waits = transactions_within(&url, LONG).await;

    let waiting: Vec<_> = runs
        .iter()
        .map(|run| {
            let (mut workflows, run_id) = (one.workflows(), run.clone());
            let wait = WaitWorkflowRunRequest { run_id, timeout_ms: WAIT_MS, ..Default::default() };
            tokio::spawn(async move { workflows.wait_workflow_run(wait).await })
        })
        .collect();
    // The first look of each is its own; it is over when the numbers stand still again.
    let first_looks = transactions_within(&url, LONG).await;
    let all_wait = transactions_within(&url, LONG).await;

    println!("in {LONG:?}: {nobody_waits} transactions, {first_looks} at first, {all_wait} while all wait");
    assert!(waiting.iter().all(|wait| !wait.is_finished()), "they wait");
    // Two servers that have nothing to do end a hundred or so by themselves; a look a second for each who
    // waits would be four times their number.
    let each = LONG.as_secs() as i64 * WAITERS as i64;
    assert!(all_wait < each / 4, "{all_wait} reads; one a second for each who waits would be {each}");
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
    two.kill_server().await;
    one.close_on(&url).await;
}
