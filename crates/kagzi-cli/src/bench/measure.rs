use super::driver::{Driver, Tally};
use super::figures::{Figures, LatencyMs};
use super::percentile::{percentile_ms, round};
use super::stage::Stage;
use super::workload::Load;
use super::{BenchStore, progress, resident_memory};
use crate::address::Address;
use crate::output;
use std::path::Path;
use tokio::time::Instant;

/// Enough for connections, caches and the allocator to settle; the first runs also wait for the worker process.
const WARM_UP_RUNS_MAX: u64 = 2_000;

/// Starts what is needed, warms up, measures under full load and one at a time, and cleans up.
pub async fn measure(
    load: &Load,
    store: &BenchStore,
    scratch: &Path,
    addr: Option<Address>,
) -> anyhow::Result<Figures> {
    let mut stage = Stage::open(load, store, scratch, addr).await?;
    let measured = measure_on(&mut stage, load, store.name()).await;
    let closed = stage.close().await;
    let figures = measured?;
    closed?;
    Ok(figures)
}

async fn measure_on(stage: &mut Stage, load: &Load, store: &'static str) -> anyhow::Result<Figures> {
    let driver = Driver::connect(&stage.address, load.shape, &stage.queue).await?;
    let name = load.shape.name;
    let warm_up_runs = (load.runs / 10).clamp(1, WARM_UP_RUNS_MAX);

    let bar = progress::bar(&format!("{name} warm-up"), warm_up_runs);
    let warm_up = stage.worker.watch(driver.drive(warm_up_runs, load.concurrency, &bar)).await?;

    let bar = progress::bar(&format!("{name} throughput"), load.runs);
    let began = Instant::now();
    let loaded = stage.worker.watch(driver.drive(load.runs, load.concurrency, &bar)).await?;
    let seconds = began.elapsed().as_secs_f64();
    let server_rss_mb = stage.server.as_ref().and_then(|server| resident_memory::megabytes(server.pid()));
    let worker_rss_mb = resident_memory::megabytes(stage.worker.pid());

    let bar = progress::bar(&format!("{name} latency"), load.latency_runs);
    let mut single = stage.worker.watch(driver.drive(load.latency_runs, 1, &bar)).await?;
    single.latencies.sort_unstable();

    let tallies = [&warm_up, &loaded, &single];
    say_first_error(&tallies);
    // A run that failed was not worth its time: only good ones count as throughput.
    let runs_per_s = loaded.latencies.len() as f64 / seconds;
    Ok(Figures {
        workload: name,
        store,
        mode: "separate",
        runs: load.runs,
        concurrency: load.concurrency,
        seconds: round(seconds, 3),
        runs_per_s: round(runs_per_s, 1),
        steps_per_s: round(runs_per_s * f64::from(load.shape.steps), 1),
        latency_ms: LatencyMs {
            p50: percentile_ms(&single.latencies, 50.0),
            p99: percentile_ms(&single.latencies, 99.0),
        },
        server_rss_mb,
        worker_rss_mb,
        errors: tallies.iter().map(|tally| tally.errors).sum(),
    })
}

fn say_first_error(tallies: &[&Tally]) {
    if let Some(error) = tallies.iter().find_map(|tally| tally.first_error.as_ref()) {
        output::note(&format!("first of the errors: {error}"));
    }
}
