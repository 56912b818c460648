//! Whole servers behind PgBouncer in transaction mode.

use futures_util::{StreamExt, stream};
use kagzi_faults::{Evidence, Move, Pace, Script, stage, start_request};
use kagzi_store_postgres::bouncer;

use crate::turn;

const RUNS: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_behind_pgbouncer_complete_everything_without_a_prepared_statement() {
    let _turn = turn().await;
    let (url, direct) = bouncer::database().await;
    let one = stage!(Pace::Steady, url);
    let two = one.sibling().await;
    let _workers = [one.worker(&[]).await, two.worker(&[]).await];

    let script = Script::steps(&["a"]).then(Move::Sleep { ms: 100 }).step("b");
    let starts = (0..RUNS).map(|n| {
        let (stage, script) = (if n % 2 == 0 { &one } else { &two }, &script);
        async move { stage.start_with(start_request("script", script)).await.unwrap().run_id }
    });
    let runs: Vec<String> = stream::iter(starts).buffered(16).collect().await;
    for (n, run) in runs.iter().enumerate() {
        let other = if n % 2 == 0 { &two } else { &one };
        other.completed(run).await;
    }

    let errors =
        [one.metric("kagzi_commit_errors_total").await, two.metric("kagzi_commit_errors_total").await];
    assert_eq!(errors, [0.0, 0.0]);
    let skew = one.metric("kagzi_clock_skew_seconds").await;
    assert!(skew.abs() < 5.0, "one machine, one clock: {skew}");
    two.kill_server().await;
    let found = one.close_on(&direct).await;
    assert_eq!(found, Evidence { runs: RUNS, completed: RUNS, results: 2 * RUNS, executions: 2 * RUNS });
}
