//! One run with many children that it waits for, beside as many runs that a client starts.

use crate::driver::Driver;
use crate::figures::{FanOut, Figures, LatencyMs, More};
use crate::measure::say_first_error;
use crate::percentile::round;
use crate::stage::Stage;
use crate::workload::{Family, Load, PARENT, Workload};
use kagzi_shell::progress;
use tokio::time::Instant;

/// So few that all of it is warm-up.
const WARM_UP_CHILDREN: u64 = 50;

pub async fn measure(stage: &mut Stage, load: &Load) -> anyhow::Result<Figures> {
    let (client, queue) = (stage.clients[0].clone(), stage.queue.clone());
    let raise = async |children: u64| {
        let run = client.workflow(PARENT, queue.as_str(), Family { children }).await?;
        Ok((run.result::<u64>().await?, run))
    };
    let driver = Driver::new(stage, Workload::W0.shape());
    let drive = async |runs: u64| driver.drive(runs, load.concurrency, &progress::bar("w0", runs)).await;
    stage.watch(raise(WARM_UP_CHILDREN)).await?;
    let warm_up = stage.watch(drive(WARM_UP_CHILDREN)).await?;

    let began = Instant::now();
    let by_client = stage.watch(drive(load.runs)).await?;
    let by_client_s = began.elapsed().as_secs_f64();

    let bar = progress::bar("fan-out", load.runs);
    let began = Instant::now();
    let (raised, parent) = stage.watch(raise(load.runs)).await?;
    let seconds = began.elapsed().as_secs_f64();
    bar.finish_and_clear();
    let tallies = [&warm_up, &by_client];
    say_first_error(&tallies);
    let errors: u64 = tallies.iter().map(|tally| tally.errors).sum();
    Ok(Figures {
        workload: load.shape.name,
        store: stage.store,
        mode: stage.mode,
        runs: load.runs,
        concurrency: load.concurrency,
        seconds: round(seconds, 3),
        runs_per_s: round(load.runs as f64 / seconds, 1),
        steps_per_s: 0.0,
        latency_ms: LatencyMs { p50: Some(round(seconds * 1e3, 3)), p99: None },
        server_rss_mb: stage.server_rss_mb(),
        worker_rss_mb: stage.worker_rss_mb(),
        written_bytes_per_run: None,
        errors: errors + load.runs - raised.min(load.runs),
        more: Some(More::FanOut(FanOut {
            by_client_s: round(by_client_s, 3),
            dispatches: parent.describe().await?.dispatch_count,
        })),
    })
}
