//! Many runs asleep, all due in the same second: how long until the last one has ended, and does any wake
//! early?

use crate::figures::{BeforeAndDuring, Figures, LatencyMs, More, Sleepers};
use crate::neighbour::{Felt, Neighbour};
use crate::percentile::{percentile_ms, round};
use crate::stage::Stage;
use crate::workload::{Load, SLEEPER, Sleep, Slept, now_ms};
use anyhow::Context;
use kagzi::Client;
use kagzi::client::{RunHandle, RunStatus};
use kagzi_shell::progress;
use std::time::{Duration, SystemTime};
use tokio::task::JoinSet;

/// Time to start one run and see it asleep, on a slow machine.
const LEAD_MS_PER_RUN: u64 = 3;
const LEAD_MS_MIN: u64 = 3_000;
const BATCH_LEN: usize = 500;

pub async fn measure(stage: &mut Stage, load: &Load) -> anyhow::Result<Figures> {
    let drained = drain(stage, load.runs, None).await?;
    // Another time with somebody who looks on: they would slow down the drain that counts.
    let neighbour = Neighbour::begin(stage).await?;
    let seen = drain(stage, load.runs, Some(neighbour)).await?;
    let drain_s = drained.last_ms.saturating_sub(drained.due_ms) as f64 / 1e3;
    Ok(Figures {
        workload: load.shape.name,
        store: stage.store,
        mode: stage.mode,
        runs: load.runs,
        concurrency: load.concurrency,
        seconds: round(drain_s, 3),
        runs_per_s: round(load.runs as f64 / drain_s.max(0.001), 1),
        steps_per_s: 0.0,
        latency_ms: LatencyMs { p50: None, p99: None },
        server_rss_mb: stage.server_rss_mb(),
        worker_rss_mb: stage.worker_rss_mb(),
        written_bytes_per_run: None,
        errors: drained.errors + seen.errors,
        more: Some(More::Sleepers(Sleepers {
            drain_s: round(drain_s, 3),
            early: drained.early + seen.early,
            late_ms: LatencyMs {
                p50: percentile_ms(&drained.late, 50.0),
                p99: percentile_ms(&drained.late, 99.0),
            },
            neighbour_p99_ms: BeforeAndDuring {
                before: seen.felt.as_ref().and_then(|felt| felt.p99_ms(seen.asleep_ms, seen.due_ms)),
                during: seen.felt.as_ref().and_then(|felt| felt.p99_ms(seen.due_ms, seen.last_ms)),
            },
        })),
    })
}

/// A crowd that slept and woke.
struct Drained {
    /// When all slept, were due, and had ended.
    asleep_ms: u64,
    due_ms: u64,
    last_ms: u64,
    /// How late each woke, in order.
    late: Vec<Duration>,
    early: u64,
    errors: u64,
    felt: Option<Felt>,
}

async fn drain(stage: &mut Stage, runs: u64, neighbour: Option<Neighbour>) -> anyhow::Result<Drained> {
    let due_ms = now_ms() + LEAD_MS_MIN + runs * LEAD_MS_PER_RUN;
    let (clients, queue) = (stage.clients.clone(), stage.queue.clone());
    let drained = async {
        let sleepers = start_all(&clients[0], &queue, runs, due_ms).await?;
        // The last one started falls asleep about last.
        if let Some(last) = sleepers.last() {
            until_asleep(last).await?;
        }
        let asleep_ms = now_ms();
        anyhow::Ok((asleep_ms, ends(&clients, sleepers, due_ms).await?))
    };
    let (asleep_ms, ends) = stage.watch(drained).await?;
    let felt = match neighbour {
        Some(neighbour) => Some(neighbour.end().await?),
        None => None,
    };
    let mut late: Vec<Duration> =
        ends.iter().map(|end| Duration::from_millis(end.woke_ms.saturating_sub(due_ms))).collect();
    late.sort_unstable();
    Ok(Drained {
        asleep_ms,
        due_ms,
        last_ms: ends.iter().map(|end| end.finished_ms).max().unwrap_or(due_ms),
        late,
        early: ends.iter().filter(|end| end.good && end.woke_ms < due_ms).count() as u64,
        // One that was not asleep in time did not take part.
        errors: ends.iter().filter(|end| !end.good).count() as u64,
        felt,
    })
}

/// Starts runs that sleep until `due_ms`.
pub async fn start_all(
    client: &Client,
    queue: &str,
    runs: u64,
    due_ms: u64,
) -> anyhow::Result<Vec<RunHandle>> {
    let bar = progress::bar("falling asleep", runs);
    let mut sleepers = Vec::with_capacity(usize::try_from(runs)?);
    while (sleepers.len() as u64) < runs {
        let left = usize::try_from(runs)? - sleepers.len();
        let starts = (0..left.min(BATCH_LEN)).map(|_| client.workflow(SLEEPER, queue, Sleep { due_ms }));
        for started in client.start_many(starts.collect()).await {
            sleepers.push(started.context("could not start a sleeper")?);
        }
        bar.set_position(sleepers.len() as u64);
    }
    bar.finish_and_clear();
    Ok(sleepers)
}

/// Waits until the run sleeps, or is over already.
pub async fn until_asleep(run: &RunHandle) -> anyhow::Result<()> {
    while matches!(run.describe().await?.status, RunStatus::Pending | RunStatus::Running) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

struct End {
    good: bool,
    woke_ms: u64,
    finished_ms: u64,
}

/// Asks for the ends once they are due, a few at a time: ten thousand waiting calls would measure themselves.
async fn ends(clients: &[Client], sleepers: Vec<RunHandle>, due_ms: u64) -> anyhow::Result<Vec<End>> {
    tokio::time::sleep(Duration::from_millis(due_ms.saturating_sub(now_ms()))).await;
    let bar = progress::bar("waking", sleepers.len() as u64);
    let mut askers = JoinSet::new();
    let each = sleepers.len().div_ceil(clients.len()).max(1);
    for (client, mine) in clients.iter().zip(sleepers.chunks(each)) {
        let (client, mine, bar) = (client.clone(), mine.to_vec(), bar.clone());
        askers.spawn(async move {
            let mut ends = Vec::with_capacity(mine.len());
            for sleeper in mine {
                ends.push(end(client.handle(sleeper.run_id()), due_ms).await?);
                bar.inc(1);
            }
            anyhow::Ok(ends)
        });
    }
    let mut all = Vec::with_capacity(sleepers.len());
    while let Some(ends) = askers.join_next().await {
        all.extend(ends??);
    }
    bar.finish_and_clear();
    Ok(all)
}

async fn end(sleeper: RunHandle, due_ms: u64) -> anyhow::Result<End> {
    let run = sleeper.finished().await?;
    let slept: Option<Slept> =
        run.output.as_ref().and_then(|output| serde_json::from_slice(&output.data).ok());
    let finished_at = run.finished_at;
    let finished = finished_at.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    let completed = run.status == RunStatus::Completed;
    Ok(End {
        good: completed && slept.is_some_and(|slept| slept.asleep_ms < due_ms),
        woke_ms: slept.map_or(0, |slept| slept.woke_ms),
        finished_ms: finished.map_or(0, |at| u64::try_from(at.as_millis()).unwrap_or(0)),
    })
}
