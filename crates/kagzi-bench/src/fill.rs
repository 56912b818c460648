//! A store with a crowd in it: one run of each kind is really run, the others are copies of it, row by row.
//!
//! Really running a million sleepers costs as much as a million runs of w3, minutes; the rows would be the
//! same. What a server keeps in memory of runs that it has seen is not measured this way: it is started after
//! the copying.

mod postgres;
mod sqlite;

use crate::driver::Driver;
use crate::sleepers;
use crate::stage::Stage;
use crate::workload::{Workload, now_ms};
use anyhow::{Context, ensure};
use kagzi::client::RunStatus;
use kagzi_server::StoreUrl;
use kagzi_shell::progress;
use kagzi_shell::progress::ProgressBar;
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

/// Longer than any measurement.
const MONTH_MS: u64 = 30 * 24 * 3600 * 1000;

/// Copies of one transaction: few enough for memory, enough to be fast.
const CHUNK_LEN: u64 = 50_000;

/// Three seconds of runs for a million copies.
const COPIES_PER_SETTLING_RUN: u64 = 30;
const SETTLE_CONCURRENCY: u32 = 512;

/// Counting stops here.
const COUNTED_MAX: u64 = 10_000;

/// Whom to add.
#[derive(Clone, Copy)]
pub struct Crowd {
    pub asleep: u64,
    /// Runs of w3.
    pub finished: u64,
}

/// Adds the crowd and says how long it took. Servers and workers are killed for it and started again.
pub async fn fill(stage: &mut Stage, crowd: Crowd) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let (sleeper, finished) = prototypes(stage).await?;
    let home = stage.home.clone().context("runs are copied into a store of our own")?;
    stage.halt().await?;
    for (prototype, copies) in [(sleeper, crowd.asleep), (finished, crowd.finished)] {
        let bar = progress::bar("filling the store", copies);
        copy(&home, prototype, copies, &bar).await.context("could not copy runs")?;
        bar.finish_and_clear();
    }
    stage.start_servers().await?;
    stage.start_workers().await?;
    for (status, there) in [(RunStatus::Sleeping, crowd.asleep), (RunStatus::Completed, crowd.finished)] {
        let counted = stage.clients[0].runs().task_queue(&stage.queue).status(status).count().await?.count;
        ensure!(counted >= there.min(COUNTED_MAX), "of {there} copies the server knows {counted}");
    }
    let filled = began.elapsed();
    settle(stage, (crowd.asleep + crowd.finished) / COPIES_PER_SETTLING_RUN).await?;
    Ok(filled)
}

/// Runs that count for nothing: for seconds after a gigabyte of copies the disk behind ours was slow,
/// whatever it was asked.
async fn settle(stage: &mut Stage, runs: u64) -> anyhow::Result<()> {
    let driver = Driver::new(stage, Workload::W3.shape());
    let bar = progress::bar("settling", runs);
    let tally = stage.watch(driver.drive(runs, SETTLE_CONCURRENCY, &bar)).await?;
    ensure!(tally.errors == 0, "a run failed: {}", tally.first_error.unwrap_or_default());
    Ok(())
}

/// One run that sleeps and one that has ended.
async fn prototypes(stage: &mut Stage) -> anyhow::Result<(Uuid, Uuid)> {
    let (client, queue) = (stage.clients[0].clone(), stage.queue.clone());
    let driver = Driver::new(stage, Workload::W3.shape());
    let made = async {
        let mut asleep = sleepers::start_all(&client, &queue, 1, now_ms() + MONTH_MS).await?;
        let sleeper = asleep.pop().context("one was started")?;
        sleepers::until_asleep(&sleeper).await?;
        anyhow::Ok((sleeper.run_id().parse()?, driver.one_run(&client).await?.run_id().parse()?))
    };
    stage.watch(made).await
}

async fn copy(home: &StoreUrl, prototype: Uuid, copies: u64, bar: &ProgressBar) -> anyhow::Result<()> {
    let chunks = Chunks { prototype, left: copies, bar: bar.clone() };
    match home {
        // Turso's file is SQLite's.
        StoreUrl::Sqlite(path) | StoreUrl::Turso(path) => {
            let path = path.clone();
            tokio::task::spawn_blocking(move || sqlite::copy(&path, chunks)).await?
        }
        StoreUrl::Postgres(url) => postgres::copy(url, chunks).await,
        StoreUrl::Memory => anyhow::bail!("a store in memory cannot be filled from outside"),
    }
}

/// The ids of the copies, rising as those of real runs do, a transaction's worth at a time.
struct Chunks {
    prototype: Uuid,
    left: u64,
    bar: ProgressBar,
}

impl Iterator for Chunks {
    type Item = Vec<Uuid>;

    fn next(&mut self) -> Option<Vec<Uuid>> {
        let len = self.left.min(CHUNK_LEN);
        self.left -= len;
        self.bar.inc(len);
        (len > 0).then(|| (0..len).map(|_| Uuid::now_v7()).collect())
    }
}

/// What a copy has in a column.
fn copied(column: &str) -> &str {
    match column {
        "run_id" => "copy.id",
        // At most one run has it.
        "business_id" => "NULL",
        same => same,
    }
}
