//! How fast the store alone is: runs of three steps through one or two servers, no network in between.
//!
//! `cargo run --release -p kagzi-store-postgres --features test-fixture --example throughput -- [servers]
//! [on|off] [finished runs] [namespaces]`

#[path = "../tests/stage/mod.rs"]
mod stage;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use kagzi_store::LaneStats;
use kagzi_store_postgres::{PostgresOptions, fixture};
use stage::{Server, complete, record};

const LENGTH: Duration = Duration::from_secs(10);
/// Runs in flight at saturation: per server four workers with 64 slots.
const WORKERS: usize = 4;
const SLOTS: u32 = 64;

#[tokio::main]
async fn main() {
    let mut args = std::env::args().skip(1);
    let count: usize = args.next().map_or(1, |text| text.parse().expect("a number of servers"));
    let notify = args.next().is_none_or(|text| text != "off");
    let url = fixture::database().await;
    let options = PostgresOptions { notify, ..PostgresOptions::default() };
    let mut servers = Vec::new();
    for _ in 0..count {
        servers.push(Arc::new(Server::open(&url, options.clone()).await));
    }

    let finished = args.next().filter(|count| count != "0");
    let namespaces: usize = args.next().map_or(1, |text| text.parse().expect("a number of namespaces"));
    if let Some(finished) = finished {
        fixture::sql(&url, &finished_runs(&finished)).await;
    }
    if count == 1 && notify {
        // By then the server knows that it is alone, as it does in all its life but the first moments.
        tokio::time::sleep(Duration::from_secs(17)).await;
    }

    let latencies = one_at_a_time(&servers[0]).await;
    println!(
        "one at a time: p50 {:?}, p99 {:?}",
        latencies[latencies.len() / 2],
        latencies[latencies.len() * 99 / 100]
    );

    let finished = Arc::new(AtomicU64::new(0));
    for server in &servers {
        for n in 0..WORKERS.max(namespaces) {
            let (namespace, slots) = (namespace(n % namespaces), slots(namespaces));
            let worker = server.register_in(&namespace, "bench", slots).await;
            let mut assignments = server.stand_by(worker, "bench").await;
            let (server, finished) = (server.clone(), finished.clone());
            tokio::spawn(async move {
                let again = namespace;
                while let Some(assignment) = assignments.recv().await {
                    let (server, finished, again) = (server.clone(), finished.clone(), again.clone());
                    tokio::spawn(async move {
                        let lease = assignment.lease();
                        server.apply(record(lease.clone(), "one", 0)).await.unwrap();
                        server.apply(record(lease.clone(), "two", 1)).await.unwrap();
                        let last = vec![record(lease.clone(), "three", 2), complete(lease)];
                        server.store.apply(last).await.unwrap();
                        finished.fetch_add(1, Relaxed);
                        server.apply(stage::start_in(&again, "bench")).await.unwrap();
                    });
                }
            });
        }
    }
    for server in &servers {
        for n in 0..WORKERS * SLOTS as usize {
            let server = server.clone();
            let start = stage::start_in(&namespace(n % namespaces), "bench");
            tokio::spawn(async move { server.apply(start).await.unwrap() });
        }
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (began, before) = (Instant::now(), finished.load(Relaxed));
    tokio::time::sleep(LENGTH).await;
    let rate = (finished.load(Relaxed) - before) as f64 / began.elapsed().as_secs_f64();
    println!("{count} server(s), notify {notify}: {rate:.0} runs/s of 3 steps");
    for server in &servers {
        let stats = server.store.stats();
        let [commits, commands, conflicts, errors, micros] =
            [&stats.commits, &stats.commands, &stats.conflicts, &stats.commit_errors, &stats.commit_micros]
                .map(LaneStats::get);
        println!(
            "  {commits} commits, {:.0} commands each, {:.2} ms each, {conflicts} conflicts, {errors} errors",
            commands as f64 / commits as f64,
            micros as f64 / commits as f64 / 1000.0,
        );
    }
}

fn namespace(number: usize) -> kagzi_model::Name {
    format!("tenant-{number}").into()
}

/// So many per worker that the number of runs in flight does not depend on the number of namespaces.
fn slots(namespaces: usize) -> u32 {
    let workers = u32::try_from(WORKERS.max(namespaces)).expect("not that many");
    (SLOTS * WORKERS as u32).div_ceil(workers)
}

async fn one_at_a_time(server: &Server) -> Vec<Duration> {
    let worker = server.register("single", 1).await;
    let mut assignments = server.stand_by(worker, "single").await;
    let mut latencies = Vec::new();
    for _ in 0..300 {
        let began = Instant::now();
        server.start("single").await;
        let lease = assignments.recv().await.unwrap().lease();
        server.apply(record(lease.clone(), "one", 0)).await.unwrap();
        server.apply(record(lease.clone(), "two", 1)).await.unwrap();
        server.store.apply(vec![record(lease.clone(), "three", 2), complete(lease)]).await.unwrap();
        latencies.push(began.elapsed());
    }
    latencies.sort();
    latencies
}

/// Rows of runs that ended long ago, as SQL.
fn finished_runs(count: &str) -> String {
    format!(
        "INSERT INTO kagzi.runs (namespace_id, run_id, workflow_type, task_queue, status, state, version, \
         epoch,
                attempts, dispatch_count, crashes, created_at, started_at, finished_at, options)
         SELECT 'default', gen_random_uuid(), 'bench', 'orders', 4, '{{\"is\":\"completed\"}}', 2, 1, 0, 1, \
         0, n, n, n, '{{}}'
           FROM generate_series(1, {count}) AS n;
         INSERT INTO kagzi.events (namespace_id, run_id, first_seq, at, kinds, detail, payload)
         SELECT namespace_id, run_id, seq, seq, '\\x04', '\\x0100', 'payload'
           FROM kagzi.runs, generate_series(1, 4) AS seq;
         ANALYZE; CHECKPOINT"
    )
}
