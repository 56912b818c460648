//! w3 on an empty store, and again beside runs that really wait for a signal; how much of the server's memory
//! do those take?

use crate::figures::{Figures, More, Waiters};
use crate::measure::{self, say_first_error};
use crate::percentile::round;
use crate::signals::Crowd;
use crate::stage::Stage;
use crate::workload::{Load, Workload};
use tokio::time::Instant;

/// So many of those that wait are told at the end, to see that they still go on.
const TOLD: usize = 500;

pub async fn measure(stage: &mut Stage, load: &Load, waiters: u64) -> anyhow::Result<Figures> {
    let w3 = Load { shape: Workload::W3.shape(), ..*load };
    let empty = measure::measure(stage, &w3).await?;
    let crowd = Crowd::on(stage, load.shape);
    let began = Instant::now();
    let last = stage.watch(crowd.waiting(waiters, TOLD)).await?;
    let (waiting_s, waiting_rss_mb) = (began.elapsed().as_secs_f64(), stage.server_rss_mb());

    let mut full = measure::measure(stage, &w3).await?;
    let told = stage.watch(crowd.told(last, load.concurrency)).await?;
    say_first_error(&[&told]);
    full.workload = load.shape.name;
    full.errors += empty.errors + told.errors;
    full.more = Some(More::Waiters(Waiters {
        waiters,
        waiting_s: round(waiting_s, 1),
        waiting_rss_mb,
        empty_runs_per_s: empty.runs_per_s,
    }));
    Ok(full)
}
