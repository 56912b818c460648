//! One run that starts many others and awaits them all.

use crate::figures::{Figures, LatencyMs};
use crate::percentile::round;
use crate::stage::Stage;
use crate::workload::{Family, Load, PARENT};
use kagzi_shell::progress;
use tokio::time::Instant;

/// So few that all of it is warm-up.
const WARM_UP_CHILDREN: u64 = 50;

pub async fn measure(stage: &mut Stage, load: &Load) -> anyhow::Result<Figures> {
    let (client, queue) = (stage.clients[0].clone(), stage.queue.clone());
    let raise = async |children: u64| {
        let family = Family { children, queue: queue.clone() };
        let run = client.workflow(PARENT, queue.as_str(), family).await?;
        Ok(run.result::<u64>().await?)
    };
    stage.watch(raise(WARM_UP_CHILDREN)).await?;
    let bar = progress::bar("fan-out", load.runs);
    let began = Instant::now();
    let raised = stage.watch(raise(load.runs)).await?;
    let seconds = began.elapsed().as_secs_f64();
    bar.finish_and_clear();
    Ok(Figures {
        workload: load.shape.name,
        store: stage.store,
        mode: stage.mode,
        runs: load.runs,
        concurrency: load.concurrency,
        seconds: round(seconds, 3),
        runs_per_s: round(load.runs as f64 / seconds, 1),
        steps_per_s: round(2.0 / seconds, 1),
        latency_ms: LatencyMs { p50: Some(round(seconds * 1e3, 3)), p99: None },
        server_rss_mb: stage.server_rss_mb(),
        worker_rss_mb: stage.worker_rss_mb(),
        written_bytes_per_run: None,
        errors: load.runs - raised.min(load.runs),
        more: None,
    })
}
