//! Thousands of signals within one second to one run: does it take each once, and what does somebody on
//! another queue feel of it?

use crate::figures::{BeforeAndDuring, Burst, Figures, LatencyMs, More};
use crate::neighbour::Neighbour;
use crate::percentile::round;
use crate::stage::Stage;
use crate::workload::{COLLECTOR, Collected, Collection, ITEM, Load, now_ms};
use anyhow::{Context, ensure};
use kagzi::Error;
use kagzi::client::RunHandle;
use kagzi_shell::progress::{self, ProgressBar};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How long the neighbour is watched before anything is sent.
const QUIET: Duration = Duration::from_secs(3);
/// All are sent within this time, in so many portions.
const SECOND: Duration = Duration::from_secs(1);
const PORTIONS: u64 = 100;
/// A run holds a thousand unread signals. Whoever is refused sends again after this time.
const AGAIN_AFTER: Duration = Duration::from_millis(20);
/// What the server says to one signal too many.
const FULL: &str = "TOO_MANY_SIGNALS";

pub async fn measure(stage: &mut Stage, load: &Load) -> anyhow::Result<Figures> {
    let neighbour = Neighbour::begin(stage).await?;
    let (client, queue) = (stage.clients[0].clone(), stage.queue.clone());
    let collection = Collection { signals: load.runs };
    let collector = client.workflow(COLLECTOR, queue.as_str(), collection).await?;
    let quiet_ms = now_ms();
    tokio::time::sleep(QUIET).await;

    let (began_ms, began) = (now_ms(), Instant::now());
    let bar = progress::bar("telling", load.runs);
    let refused = stage.watch(tell(&collector, load.runs, &bar)).await?;
    let told_s = began.elapsed().as_secs_f64();
    let told_ms = now_ms();
    let collected: Collected = stage.watch(async { Ok(collector.result().await?) }).await?;
    let seconds = began.elapsed().as_secs_f64();
    let felt = neighbour.end().await?;
    Ok(Figures {
        workload: load.shape.name,
        store: stage.store,
        mode: stage.mode,
        runs: load.runs,
        concurrency: load.concurrency,
        seconds: round(seconds, 3),
        runs_per_s: round(load.runs as f64 / seconds, 1),
        steps_per_s: 0.0,
        latency_ms: LatencyMs { p50: None, p99: None },
        server_rss_mb: stage.server_rss_mb(),
        worker_rss_mb: stage.worker_rss_mb(),
        written_bytes_per_run: None,
        // Each is taken once: none is missing, and none came twice.
        errors: load.runs - collected.different.min(load.runs),
        more: Some(More::Burst(Burst {
            told_s: round(told_s, 3),
            refused,
            neighbour_p99_ms: BeforeAndDuring {
                before: felt.p99_ms(quiet_ms, began_ms),
                during: felt.p99_ms(began_ms, told_ms),
            },
        })),
    })
}

/// Sends all of them, evenly over a second, and answers how often somebody was refused and sent again.
async fn tell(run: &RunHandle, signals: u64, bar: &ProgressBar) -> anyhow::Result<u64> {
    let (began, refused) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let mut senders = JoinSet::new();
    for portion in 0..PORTIONS {
        tokio::time::sleep_until(began + SECOND * portion as u32 / PORTIONS as u32).await;
        for n in signals * portion / PORTIONS..signals * (portion + 1) / PORTIONS {
            senders.spawn(tell_one(run.clone(), n, refused.clone(), bar.clone()));
        }
    }
    while let Some(sent) = senders.join_next().await {
        sent.context("a sender panicked")??;
    }
    bar.finish_and_clear();
    Ok(refused.load(Ordering::Relaxed))
}

async fn tell_one(run: RunHandle, n: u64, refused: Arc<AtomicU64>, bar: ProgressBar) -> anyhow::Result<()> {
    loop {
        match run.signal(ITEM, &n).id(n.to_string()).await {
            Ok(told) => {
                ensure!(!told.already, "signal {n} was told before");
                bar.inc(1);
                return Ok(());
            }
            Err(error) if is_full(&error) => {
                refused.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(AGAIN_AFTER).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_full(error: &Error) -> bool {
    matches!(error, Error::Refused(refusal) if refusal.reason == FULL)
}
