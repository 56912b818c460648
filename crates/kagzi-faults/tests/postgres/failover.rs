//! The primary of two databases is lost and its standby takes over, as Patroni would have it.

use std::time::{Duration, Instant};

use futures_util::future::{join, join_all};
use kagzi_faults::{Evidence, Pace, Script, Stage, eventually_within, stage, start_request};
use kagzi_store_postgres::fixture;

use crate::{addresses, count, turn};

const CLIENTS: usize = 4;
const STEPS: [&str; 3] = ["a", "b", "c"];
/// Runs that each client has started before the primary is lost, and after its standby has taken over.
const BEFORE: usize = 20;
const AFTER: usize = 20;

/// Starts runs one after the other, each until it is acknowledged.
async fn start_runs(stage: &Stage, client: usize, runs: std::ops::Range<usize>) {
    for n in runs {
        let mut request = start_request("script", &Script::steps(&STEPS));
        request.business_id = format!("order-{client}-{n}");
        stage.start_surely(request).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_to_a_synchronous_standby_loses_and_repeats_nothing_and_nobody_is_restarted() {
    let _turn = turn().await;
    let mut cluster = fixture::Pair::start().await;
    let one = stage!(Pace::Calm, cluster.url());
    let two = one.sibling().await;
    let _workers =
        [one.worker_at(addresses(&one, &two), &[]).await, one.worker_at(addresses(&two, &one), &[]).await];
    let held = one.start(&Script::default().gated("held").step("after")).await;
    one.began(&held, "held", 1).await;

    let clients = |runs: std::ops::Range<usize>| {
        let servers = [&one, &two];
        join_all((0..CLIENTS).map(move |n| start_runs(servers[n % 2], n, runs.clone())))
    };
    clients(0..BEFORE).await;
    // Steps are under way, and starts go on while nobody takes writes.
    let lost = Instant::now();
    let took_over = async {
        cluster.fail_over().await;
        lost.elapsed()
    };
    let (took_over, _) = join(took_over, clients(BEFORE..BEFORE + AFTER)).await;
    println!("the standby took over after {took_over:?}, all runs were started after {:?}", lost.elapsed());
    one.log.open_gate("held");
    let done = one.completed(&held).await;
    let url = cluster.standby_url();
    let left = "SELECT count(*) FROM kagzi.runs WHERE status <> 4";
    let nothing = async || count(&url, left).await.filter(|left| *left == 0);
    eventually_within(Duration::from_secs(60), "all runs end", nothing).await;

    assert_eq!((done.lease_epoch, done.dispatch_count), (1, 1), "its worker kept it all the while");
    two.kill_server().await;
    let runs = CLIENTS * (BEFORE + AFTER);
    let results = runs * STEPS.len() + 2;
    let found = one.close_on(&url).await;
    assert_eq!(found, Evidence { runs: runs + 1, completed: runs + 1, results, executions: results });
}
