//! The database goes away, and comes back.

mod stage;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use kagzi_model::{Act, Command, EventKind, RunId, Started, Timestamp, WorkerId};
use kagzi_store::{Beat, LaneStats, Silent, StoreError, SweepKind, SystemClock};
use kagzi_store_postgres::{PostgresOptions, PostgresStore, fixture};
use stage::{Server, complete, record};

/// Sends a command until the database is there to take it; an error leaves open whether it was carried out.
async fn insist(server: &Server, commands: Vec<kagzi_model::Command>) -> Vec<kagzi_store::Outcome> {
    loop {
        match server.store.apply(commands.clone()).await {
            Ok(outcomes) => return outcomes,
            Err(StoreError::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(50)).await,
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn a_read_replica_is_refused_with_what_to_do() {
    let replica = fixture::Server::replica();

    let clock = Arc::new(SystemClock::new());
    let opened =
        PostgresStore::open(&replica.url(), PostgresOptions::default(), clock, Arc::new(Silent)).await;

    let error = opened.err().expect("refused").to_string();
    assert!(error.contains("read replica") && error.contains("primary"), "{error}");
}

#[tokio::test]
async fn a_database_that_takes_no_writes_is_refused_with_what_to_do() {
    let url = fixture::database().await;
    let config: tokio_postgres::Config = url.parse().unwrap();
    let close =
        format!("ALTER DATABASE {} SET default_transaction_read_only = on", config.get_dbname().unwrap());
    fixture::sql(&url, &close).await;

    let clock = Arc::new(SystemClock::new());
    let opened = PostgresStore::open(&url, PostgresOptions::default(), clock, Arc::new(Silent)).await;

    let error = opened.err().expect("refused").to_string();
    assert!(error.contains("default_transaction_read_only"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashes_of_the_database_lose_nothing_and_double_nothing() {
    const RUNS: usize = 300;
    let mut database = fixture::Server::private();
    let url = database.url();
    let options = PostgresOptions { poll_ms: Some(300), ..PostgresOptions::default() };
    let servers =
        [Arc::new(Server::open(&url, options.clone()).await), Arc::new(Server::open(&url, options).await)];
    let stop = Arc::new(AtomicBool::new(false));
    for server in &servers {
        let worker = server.register("charge", 10).await;
        tokio::spawn(work(server.clone(), worker));
        tokio::spawn(keep_house(server.clone(), worker, stop.clone()));
    }

    let started: Arc<parking_lot::Mutex<Vec<RunId>>> = Arc::default();
    let acknowledged = Arc::new(AtomicUsize::new(0));
    let client = {
        let (server, started, acknowledged) = (servers[0].clone(), started.clone(), acknowledged.clone());
        tokio::spawn(async move {
            for n in 0..RUNS {
                let Act::Start(mut start) = stage::start("charge").act else { unreachable!() };
                start.business_id = Some(format!("order-{n}").into());
                let outcome = insist(&server, vec![Command::start(start)]).await.remove(0);
                let kagzi_model::Reply::Started(Started { run, .. }) = outcome.unwrap() else {
                    unreachable!()
                };
                started.lock().push(run);
                acknowledged.fetch_add(1, Relaxed);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
    };
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_millis(700)).await;
        database.crash();
    }
    client.await.unwrap();
    let unfinished = "SELECT count(*) FROM kagzi.runs WHERE status <> 4";
    let mut left = String::new();
    for _ in 0..200 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        left = fixture::sql(&url, unfinished).await.remove(0);
        if left == "0" {
            break;
        }
    }
    stop.store(true, Relaxed);

    assert_eq!(left, "0", "runs are left over");
    let errors =
        servers.iter().map(|server| LaneStats::get(&server.store.stats().commit_errors)).sum::<u64>();
    assert!(errors > 0, "no crash was noticed");
    // I5 an acknowledged start survives, and one business id names one run.
    let ids: std::collections::HashSet<RunId> = started.lock().iter().copied().collect();
    assert_eq!(ids.len(), RUNS);
    assert_eq!(fixture::sql(&url, "SELECT count(*) FROM kagzi.runs").await, [RUNS.to_string()]);
    // I1 one terminal event, I2 one result per step, I11 no gap.
    for (what, odd) in [
        (
            "ends",
            "SELECT count(*) FROM (SELECT run_id FROM kagzi.events, generate_series(0, length(kinds) - 1) AS i
                   WHERE get_byte(kinds, i) IN (13, 14, 15, 16)
                   GROUP BY run_id HAVING count(*) <> 1) AS odd",
        ),
        (
            "gaps",
            "SELECT count(*) FROM (SELECT run_id FROM kagzi.events
                   GROUP BY run_id HAVING max(first_seq + length(kinds)) <> 1 + sum(length(kinds))) AS odd",
        ),
    ] {
        assert_eq!(fixture::sql(&url, odd).await, ["0"], "{what}");
    }
    for run in ids {
        let history = servers[0].store.events(&stage::namespace(), run, 0, 1_000).await.unwrap();
        let results = history.iter().filter_map(|event| match &event.kind {
            EventKind::StepCompleted { step, .. } => Some(step.to_string()),
            _ => None,
        });
        let mut results: Vec<String> = results.collect();
        results.sort();
        assert_eq!(results, ["one", "two"], "I2: the results of run {run}");
    }
}

/// Executes whatever it is given, and stands by again when the database has forgotten it.
async fn work(server: Arc<Server>, worker: WorkerId) {
    let mut assignments = server.stand_by(worker, "charge").await;
    while let Some(assignment) = assignments.recv().await {
        let server = server.clone();
        tokio::spawn(async move {
            let lease = assignment.lease();
            // A refusal means that somebody else has the run by now.
            insist(&server, vec![record(lease.clone(), "one", 0)]).await;
            insist(&server, vec![record(lease.clone(), "two", 1), complete(lease)]).await;
        });
    }
}

/// Sweeps, and gives back runs whose delivery was lost together with the answer to their commit.
async fn keep_house(server: Arc<Server>, worker: WorkerId, stop: Arc<AtomicBool>) {
    while !stop.load(Relaxed) {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let beat = Beat {
            id: worker,
            of: None,
            runs: Vec::new(),
            lease_ms: 30_000,
            unlisted_after_ms: Some(3000),
            reconnected: false,
            listed_before: Vec::new(),
        };
        // Away for the moment; the next round does it.
        let _ = server.store.ask(beat).await;
        let _ = server.store.sweep(SweepKind::Expired { now: Timestamp::MAX, leap: None }).await;
    }
}
