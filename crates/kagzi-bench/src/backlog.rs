//! w3 on an empty store, and again beside runs that sleep in it; then how long a server takes to start there.

use crate::figures::{Backlog, Figures, More};
use crate::fill::{self, Crowd};
use crate::measure;
use crate::percentile::round;
use crate::stage::Stage;
use crate::workload::{Input, Load, Output, WORKFLOW_TYPE};
use tokio::time::Instant;

pub async fn measure(stage: &mut Stage, load: &Load, backlog: u64) -> anyhow::Result<Figures> {
    let empty = measure::measure(stage, load).await?;
    let filled = fill::fill(stage, Crowd { asleep: backlog, finished: 0 }).await?;
    let mut full = measure::measure(stage, load).await?;
    let started = start_up(stage, load).await?;
    full.errors += empty.errors + u64::from(!started.good);
    full.more = Some(More::Backlog(Backlog {
        backlog,
        empty_runs_per_s: round(empty.runs_per_s, 1),
        fill_s: round(filled.as_secs_f64(), 1),
        startup_s: round(started.seconds, 3),
        startup_rss_mb: started.rss_mb,
    }));
    Ok(full)
}

struct StartUp {
    seconds: f64,
    rss_mb: Option<f64>,
    good: bool,
}

/// A server after one that was killed, which therefore has a log to recover from; up to the answer to a
/// start, which takes a commit.
async fn start_up(stage: &mut Stage, load: &Load) -> anyhow::Result<StartUp> {
    stage.halt().await?;
    let began = Instant::now();
    stage.start_servers().await?;
    let input = Input::new(load.shape, 0);
    let run = stage.clients[0].workflow(WORKFLOW_TYPE, stage.queue.as_str(), &input).await?;
    let (seconds, rss_mb) = (began.elapsed().as_secs_f64(), stage.server_rss_mb());
    stage.start_workers().await?;
    let output: Output = stage.watch(async { Ok(run.result().await?) }).await?;
    Ok(StartUp { seconds, rss_mb, good: output == input.expected_output() })
}
