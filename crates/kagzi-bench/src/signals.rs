//! Runs that wait for a signal: how many per second are started, wait, are told and end, and how soon does
//! the code of one go on?

use crate::driver::Tally;
use crate::figures::{Figures, LatencyMs, More, Signals};
use crate::measure::{self, say_first_error};
use crate::percentile::{percentile_ms, round};
use crate::sleepers::until_asleep;
use crate::stage::Stage;
use crate::workload::{GO, Heard, Input, Load, SIGNALLED, Shape, Workload, now_us};
use anyhow::{Context, ensure};
use kagzi::Client;
use kagzi::client::{RunHandle, RunStatus};
use kagzi_shell::progress::{self, ProgressBar};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Starts in one call.
const BATCH_LEN: u64 = 500;
const WARM_UP_RUNS_MAX: u64 = 2_000;

pub async fn measure(stage: &mut Stage, load: &Load) -> anyhow::Result<Figures> {
    let w3 = measure::measure(stage, &Load { shape: Workload::W3.shape(), ..*load }).await?;
    let crowd = Crowd::on(stage, load.shape);
    let warm_up_runs = (load.runs / 10).clamp(1, WARM_UP_RUNS_MAX);
    let runs = stage.watch(crowd.waiting(warm_up_runs, usize::MAX)).await?;
    let warm_up = stage.watch(crowd.told(runs, load.concurrency)).await?;

    let began = Instant::now();
    let runs = stage.watch(crowd.waiting(load.runs, usize::MAX)).await?;
    let waiting_s = began.elapsed().as_secs_f64();
    let loaded = stage.watch(crowd.told(runs, load.concurrency)).await?;
    let seconds = began.elapsed().as_secs_f64();
    let (server_rss_mb, worker_rss_mb) = (stage.server_rss_mb(), stage.worker_rss_mb());
    let mut single = stage.watch(crowd.one_at_a_time(load.latency_runs)).await?;
    single.latencies.sort_unstable();
    let tallies = [&warm_up, &loaded, &single];
    say_first_error(&tallies);
    Ok(Figures {
        workload: load.shape.name,
        store: stage.store,
        mode: stage.mode,
        runs: load.runs,
        concurrency: load.concurrency,
        seconds: round(seconds, 3),
        runs_per_s: round(loaded.latencies.len() as f64 / seconds, 1),
        steps_per_s: 0.0,
        latency_ms: LatencyMs {
            p50: percentile_ms(&single.latencies, 50.0),
            p99: percentile_ms(&single.latencies, 99.0),
        },
        server_rss_mb,
        worker_rss_mb,
        written_bytes_per_run: None,
        errors: w3.errors + tallies.iter().map(|tally| tally.errors).sum::<u64>(),
        more: Some(More::Signals(Signals {
            waiting_s: round(waiting_s, 3),
            told_s: round(seconds - waiting_s, 3),
            w3_runs_per_s: w3.runs_per_s,
        })),
    })
}

/// Runs that wait for a signal, and who starts and tells them.
#[derive(Clone)]
pub struct Crowd {
    clients: Vec<Client>,
    queue: String,
    shape: Shape,
}

impl Crowd {
    pub fn on(stage: &Stage, shape: Shape) -> Crowd {
        Crowd { clients: stage.clients.clone(), queue: stage.queue.clone(), shape }
    }

    /// Starts so many and returns once every one of them waits, and so holds no worker. Answers with the last
    /// ones, as many as are to be kept.
    pub async fn waiting(&self, count: u64, kept: usize) -> anyhow::Result<Vec<RunHandle>> {
        let client = &self.clients[0];
        let bar = progress::bar("waiting", count);
        let (mut runs, mut begun) = (Vec::new(), 0);
        while begun < count {
            let batch = (count - begun).min(BATCH_LEN);
            let starts = (0..batch).map(|_| client.workflow(SIGNALLED, &*self.queue, ()));
            for started in client.start_many(starts.collect()).await {
                runs.push(started.context("could not start a run that waits")?);
            }
            runs.drain(..runs.len().saturating_sub(kept.max(1)));
            begun += batch;
            bar.set_position(begun);
        }
        // The last one started waits about last.
        if let Some(last) = runs.last() {
            until_asleep(last).await?;
        }
        let awake = client.runs().task_queue(&*self.queue).page_size(1);
        let awake = awake.status(RunStatus::Pending).status(RunStatus::Running);
        while !awake.page("").await?.rows.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        bar.finish_and_clear();
        Ok(runs)
    }

    /// Tells all of them, so many at a time, and waits for their ends.
    pub async fn told(&self, runs: Vec<RunHandle>, concurrency: u32) -> anyhow::Result<Tally> {
        let bar = progress::bar("telling", runs.len() as u64);
        let (runs, next) = (Arc::<[RunHandle]>::from(runs), Arc::new(AtomicUsize::new(0)));
        let mut clients = JoinSet::new();
        for number in 0..runs.len().min(concurrency as usize) {
            let client = self.clients[number % self.clients.len()].clone();
            clients.spawn(self.clone().one_client(client, runs.clone(), next.clone(), bar.clone()));
        }
        let mut total = Tally::default();
        while let Some(tally) = clients.join_next().await {
            total.add(tally.context("a benchmark client panicked")?);
        }
        bar.finish_and_clear();
        Ok(total)
    }

    async fn one_client(
        self,
        client: Client,
        runs: Arc<[RunHandle]>,
        next: Arc<AtomicUsize>,
        bar: ProgressBar,
    ) -> Tally {
        let mut tally = Tally::default();
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            let Some(run) = runs.get(n) else { return tally };
            tally.count(self.tell(&client.handle(run.run_id()), n as u64).await);
            bar.inc(1);
        }
    }

    /// Tells a run and answers how long it took until its code went on.
    async fn tell(&self, run: &RunHandle, n: u64) -> anyhow::Result<Duration> {
        let said = Input::new(self.shape, n);
        let told_us = now_us();
        run.signal(GO, &said).await?;
        let heard: Heard = run.result().await?;
        ensure!(heard.said == said, "run {n} was told something else");
        Ok(Duration::from_micros(heard.heard_us.saturating_sub(told_us)))
    }

    /// One after the other, each when it waits.
    async fn one_at_a_time(&self, count: u64) -> anyhow::Result<Tally> {
        let bar = progress::bar("one at a time", count);
        let mut tally = Tally::default();
        for n in 0..count {
            let run = self.clients[0].workflow(SIGNALLED, &*self.queue, ()).await?;
            until_asleep(&run).await?;
            tally.count(self.tell(&run, n).await);
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(tally)
    }
}
