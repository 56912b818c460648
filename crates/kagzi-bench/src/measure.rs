use crate::driver::{Driver, Tally};
use crate::figures::{Figures, LatencyMs};
use crate::percentile::{percentile_ms, round};
use crate::stage::Stage;
use crate::workload::Load;
use kagzi_shell::output;
use kagzi_shell::progress;
use tokio::time::Instant;

/// Enough for connections, caches and the allocator to settle; the first runs also wait for the worker
/// process.
const WARM_UP_RUNS_MAX: u64 = 2_000;

/// Warms up, measures under full load and one at a time.
pub async fn measure(stage: &mut Stage, load: &Load) -> anyhow::Result<Figures> {
    let driver = Driver::new(stage, load.shape);
    let name = load.shape.name;
    let warm_up_runs = (load.runs / 10).clamp(1, WARM_UP_RUNS_MAX);

    let bar = progress::bar(&format!("{name} warm-up"), warm_up_runs);
    let warm_up = stage.watch(driver.drive(warm_up_runs, load.concurrency, &bar)).await?;

    let bar = progress::bar(&format!("{name} throughput"), load.runs);
    let written = stage.written_bytes();
    let began = Instant::now();
    let loaded = stage.watch(driver.drive(load.runs, load.concurrency, &bar)).await?;
    let seconds = began.elapsed().as_secs_f64();
    let written = written.and_then(|before| Some(stage.written_bytes()?.saturating_sub(before)));
    let (server_rss_mb, worker_rss_mb) = (stage.server_rss_mb(), stage.worker_rss_mb());

    let bar = progress::bar(&format!("{name} latency"), load.latency_runs);
    let mut single = stage.watch(driver.drive(load.latency_runs, 1, &bar)).await?;
    single.latencies.sort_unstable();

    let tallies = [&warm_up, &loaded, &single];
    say_first_error(&tallies);
    // A run that failed was not worth its time: only good ones count as throughput.
    let runs_per_s = loaded.latencies.len() as f64 / seconds;
    Ok(Figures {
        workload: name,
        store: stage.store,
        mode: stage.mode,
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
        written_bytes_per_run: written.map(|bytes| round(bytes as f64 / load.runs.max(1) as f64, 0)),
        errors: tallies.iter().map(|tally| tally.errors).sum(),
        more: None,
    })
}

pub fn say_first_error(tallies: &[&Tally]) {
    if let Some(error) = tallies.iter().find_map(|tally| tally.first_error.as_ref()) {
        output::note(&format!("first of the errors: {error}"));
    }
}
