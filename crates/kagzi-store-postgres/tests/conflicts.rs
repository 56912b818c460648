//! Another server was first: what this one reads again is what that one changed.

mod stage;

use std::time::Duration;

use futures_util::future::join_all;
use kagzi_model::{Author, Command, RunKey, act};
use kagzi_store::LaneStats;
use kagzi_store_postgres::{PostgresOptions, fixture};
use stage::{Server, namespace, next, record};

const SOON: Duration = Duration::from_secs(20);
const RUNS: usize = 100;

#[tokio::test]
async fn a_conflict_reloads_the_run_that_was_changed_elsewhere_and_no_other() {
    let url = fixture::database().await;
    let here = Server::open(&url, PostgresOptions::default()).await;
    let there = Server::open(&url, PostgresOptions::default()).await;
    let worker = here.register("charge", RUNS as u32).await;
    let mut assignments = here.stand_by(worker, "charge").await;
    // Workers that stand by and are no part of it.
    let idle = join_all((0..20).map(|_| here.register("other", 1))).await;
    let _idle = join_all(idle.iter().map(|worker| here.stand_by(*worker, "other"))).await;
    join_all((0..RUNS).map(|_| here.start("charge"))).await;
    let mut leases = Vec::new();
    for _ in 0..RUNS {
        leases.push(next(&mut assignments, SOON).await.lease());
    }
    let taken = leases.pop().unwrap();
    let cancel = RunKey::new(namespace(), taken.run).order(Author::new("tester", "no"), act::Cancel);
    there.apply(cancel).await.unwrap();
    let stats = here.store.stats();
    let [loaded, conflicts, trips] =
        [&stats.runs_loaded, &stats.conflicts, &stats.round_trips].map(LaneStats::get);

    let refused = here.apply(record(taken, "pay", 0)).await;
    let others: Vec<Command> = leases.into_iter().map(|lease| record(lease, "pay", 0)).collect();
    let outcomes = here.store.apply(others).await.unwrap();

    assert!(refused.is_err(), "{refused:?}");
    assert!(outcomes.iter().all(Result::is_ok));
    let [loaded, conflicts, trips] = [
        LaneStats::get(&stats.runs_loaded) - loaded,
        LaneStats::get(&stats.conflicts) - conflicts,
        LaneStats::get(&stats.round_trips) - trips,
    ];
    println!("{conflicts} conflicts, {loaded} runs loaded again, {trips} round trips");
    assert_eq!((conflicts, loaded), (1, 1));
    // The attempt, the look at the row and the second attempt, the other batch, and looks for work in
    // between.
    assert!(trips < 15, "{trips} round trips");
}
