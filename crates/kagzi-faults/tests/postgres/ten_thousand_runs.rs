//! Much work, many workers, two servers.

use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use kagzi_faults::{Evidence, Pace, Script, eventually_within, stage, start_request};
use kagzi_store_postgres::fixture;

use crate::{addresses, count, turn};

const RUNS: usize = 10_000;
const PROCESSES: usize = 5;
const WORKERS_EACH: &str = "10";
/// Ten times what it takes on two idle cores, unoptimised.
const PATIENCE: Duration = Duration::from_secs(300);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_give_ten_thousand_runs_to_fifty_workers_each_once() {
    let _turn = turn().await;
    let url = fixture::database().await;
    let one = stage!(Pace::Calm, url.clone());
    let two = one.sibling().await;
    let mut workers = Vec::new();
    for process in 0..PROCESSES {
        let list = if process % 2 == 0 { addresses(&one, &two) } else { addresses(&two, &one) };
        workers.push(one.worker_at(list, &["--workers", WORKERS_EACH, "--max-concurrent", "4"]).await);
    }
    let online = "SELECT count(*) FROM kagzi.workers WHERE status = 1";
    eventually_within(PATIENCE, "fifty workers", async || count(&url, online).await.filter(|n| *n == 50))
        .await;

    let began = Instant::now();
    let starts = (0..RUNS).map(|n| {
        let stage = if n % 2 == 0 { &one } else { &two };
        async move { stage.start_with(start_request("script", &Script::steps(&["a"]))).await.unwrap() }
    });
    let started = stream::iter(starts).buffer_unordered(64).count().await;
    let left = "SELECT count(*) FROM kagzi.runs WHERE status <> 4";
    eventually_within(PATIENCE, "all runs end", async || count(&url, left).await.filter(|n| *n == 0)).await;
    let took = began.elapsed();

    let leases = [one.metric("kagzi_leases_total").await, two.metric("kagzi_leases_total").await];
    let again = "SELECT count(*) FROM kagzi.runs WHERE epoch <> 1 OR dispatch_count <> 1";
    let claims = "SELECT count(*) FROM kagzi.events, generate_series(0, length(kinds) - 1) AS i
                   WHERE get_byte(kinds, i) = 2";
    assert_eq!((started, count(&url, again).await), (RUNS, Some(0)));
    assert_eq!(count(&url, claims).await, Some(RUNS as i64), "each was claimed once");
    assert!(leases.iter().all(|leases| *leases > 100.0), "both servers had a share: {leases:?}");
    drop(workers);
    two.kill_server().await;
    let all = Evidence { runs: RUNS, completed: RUNS, results: RUNS, executions: RUNS };
    assert_eq!(one.close().await, all);
    println!("{RUNS} runs in {took:?}, leases by server {leases:?}");
}
