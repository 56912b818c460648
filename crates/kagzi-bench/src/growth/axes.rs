//! What grows, and what is measured at each point.

use super::curve::{Column, Curve, Drawn, Point, X};
use crate::cleanup::Cleanup;
use crate::connection;
use crate::counters::Counters;
use crate::figures::{self, Figures};
use crate::fill::{self, Crowd};
use crate::history;
use crate::measure;
use crate::percentile::round;
use crate::stage::{Place, Post, Setup, Stage};
use crate::store::BenchStore;
use crate::workload::{Input, Load, Output, POLLER, Rounds, Shape, WORKFLOW_TYPE, Workload};
use anyhow::ensure;
use clap::ValueEnum;
use kagzi_proto::v1::ListWorkersRequest;
use kagzi_shell::address::Address;
use kagzi_shell::output;
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Axis {
    /// Other runs in the store, half of them asleep, half finished.
    Runs,
    /// Workers, each with a session of its own.
    Workers,
    /// Steps of one run.
    History,
    /// Claims of one run that looks, sleeps and looks again.
    Claims,
    /// Bytes of each payload.
    Payload,
}

/// Where it is measured.
pub struct Site<'a> {
    pub store: &'a BenchStore,
    pub scratch: &'a Path,
    pub cleanup: &'a Cleanup,
    pub quick: bool,
    /// To complete at each point, unless it is quick.
    pub runs: u64,
}

/// All workers together can hold as many runs as the largest number of them, so that only their number
/// differs.
const SLOTS: u64 = 1000;

const fn column(key: &'static str, label: &'static str, drawn: Drawn) -> Column {
    Column { key, label, drawn }
}

const RUNS_PER_S: Column = column("runs_per_s", "runs/s", Drawn::Linear);
const P50: Column = column("p50_ms", "p50 in ms, one at a time", Drawn::Linear);
const P99: Column = column("p99_ms", "p99 in ms", Drawn::No);
const SERVER_RSS: Column = column("server_rss_mb", "server RSS in MB", Drawn::No);
const WORKER_RSS: Column = column("worker_rss_mb", "worker RSS in MB", Drawn::No);

impl Axis {
    pub fn name(self) -> &'static str {
        match self {
            Axis::Runs => "runs",
            Axis::Workers => "workers",
            Axis::History => "history",
            Axis::Claims => "claims",
            Axis::Payload => "payload",
        }
    }

    pub async fn measure(self, site: &Site<'_>) -> anyhow::Result<Curve> {
        match self {
            Axis::Runs => runs(site).await,
            Axis::Workers => workers(site).await,
            Axis::History => histories(site).await,
            Axis::Claims => claims(site).await,
            Axis::Payload => payloads(site).await,
        }
    }
}

async fn runs(site: &Site<'_>) -> anyhow::Result<Curve> {
    let load = site.load(Workload::W3.shape());
    let mut stage = site.open(load.concurrency).await?;
    let mut points = Vec::new();
    let mut there = 0;
    for x in site.pick(&[0, 10_000, 100_000, 1_000_000], &[0, 10, 100]) {
        site.say("runs", x);
        let more = x - there;
        let filled = match more {
            0 => None,
            more => {
                let crowd = Crowd { asleep: more / 2, finished: more - more / 2 };
                Some(round(fill::fill(&mut stage, crowd).await?.as_secs_f64(), 1))
            }
        };
        there = x;
        let figures = checked(measure::measure(&mut stage, &load).await?)?;
        points.push(Point { x, figures: [figures_of(&figures), vec![filled]].concat() });
    }
    stage.close().await?;
    let filled = column("fill_s", "filled in s", Drawn::No);
    Ok(Curve {
        title: "w3 beside other runs",
        x: X { label: "runs in the store, half asleep, half finished", bytes: false },
        columns: vec![
            RUNS_PER_S,
            P50,
            P99,
            column("server_rss_mb", "server RSS in MB", Drawn::Linear),
            filled,
        ],
        points,
        quick: site.quick,
    })
}

async fn workers(site: &Site<'_>) -> anyhow::Result<Curve> {
    let load = site.load(Workload::W3.shape());
    let mut points = Vec::new();
    for x in site.pick(&[1, 10, 100, 1000], &[1, 4]) {
        site.say("workers", x);
        // A store of its own for each point, so that nothing but the number differs.
        let mut stage = Stage::without_workers(site.setup(), load.concurrency).await?;
        let queue = stage.queue.clone();
        let slots = u32::try_from(SLOTS / x)?;
        stage.start_worker(Post { at: 0, queue: &queue, slots }, &["--workers", &x.to_string()]).await?;
        let server = stage.addresses[0].clone();
        stage.watch(all_online(server, queue, x)).await?;
        let figures = checked(measure::measure(&mut stage, &load).await?)?;
        stage.close().await?;
        points.push(Point { x, figures: [figures_of(&figures), vec![figures.worker_rss_mb]].concat() });
    }
    Ok(Curve {
        title: "w3 on many workers",
        x: X { label: "workers with a session each, 1,000 slots together", bytes: false },
        columns: vec![RUNS_PER_S, P50, P99, SERVER_RSS, WORKER_RSS],
        points,
        quick: site.quick,
    })
}

/// Waits until so many workers are there: a thousand that are just coming would be measured as well.
async fn all_online(server: Address, queue: String, workers: u64) -> anyhow::Result<()> {
    let mut registry = connection::Workers::new(connection::connect(&server).await?);
    let request = ListWorkersRequest {
        task_queue: queue,
        status: kagzi_proto::v1::WorkerStatus::Online.into(),
        page_size: 1,
        ..Default::default()
    };
    while registry.list_workers(request.clone()).await?.into_inner().total_count != workers {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

async fn histories(site: &Site<'_>) -> anyhow::Result<Curve> {
    let mut points = Vec::new();
    for x in site.pick(&[10, 1_000, 10_000], &[10, 60]) {
        site.say("steps", x);
        let steps = u32::try_from(x)?;
        let mut stage = site.open(1).await?;
        let run_s = one_run(&mut stage, Shape::of_steps("history", steps)).await?;
        let load = Load { shape: Workload::History.shape(), runs: 1, concurrency: 1, latency_runs: 1 };
        let resumed = checked(history::measure(&mut stage, &load, steps).await?)?;
        stage.close().await?;
        let figures = vec![
            Some(round(run_s, 3)),
            Some(round(run_s * 1e3 / x as f64, 3)),
            Some(resumed.seconds),
            resumed.server_rss_mb,
            resumed.worker_rss_mb,
        ];
        points.push(Point { x, figures });
    }
    Ok(Curve {
        title: "one run with a long history",
        x: X { label: "steps, one after the other", bytes: false },
        columns: vec![
            column("run_s", "seconds for the run", Drawn::Log),
            column("step_ms", "ms per step", Drawn::Linear),
            column("resume_s", "seconds to resume after a kill at 95 %", Drawn::Linear),
            SERVER_RSS,
            WORKER_RSS,
        ],
        points,
        quick: site.quick,
    })
}

/// Seconds from start to result, after a run that wakes everybody up.
async fn one_run(stage: &mut Stage, shape: Shape) -> anyhow::Result<f64> {
    let (client, queue) = (stage.clients[0].clone(), stage.queue.clone());
    let run = async |input: Input| {
        let output: Output = client.workflow(WORKFLOW_TYPE, queue.as_str(), &input).await?.result().await?;
        ensure!(output == input.expected_output(), "the run returned a wrong result");
        Ok(())
    };
    stage.watch(run(Input::new(Workload::W3.shape(), 0))).await?;
    let began = Instant::now();
    stage.watch(run(Input::new(shape, 1))).await?;
    Ok(began.elapsed().as_secs_f64())
}

/// Short, and long enough that the run is given back and claimed again.
const PAUSE_MS: u64 = 20;

async fn claims(site: &Site<'_>) -> anyhow::Result<Curve> {
    let mut points = Vec::new();
    for x in site.pick(&[10, 100, 1_000], &[3, 6]) {
        site.say("claims", x);
        let mut stage = site.open(1).await?;
        one_run(&mut stage, Shape::of_steps("claims", 1)).await?;
        let (client, queue, server) =
            (stage.clients[0].clone(), stage.queue.clone(), stage.addresses[0].clone());
        let rounds = Rounds { rounds: u32::try_from(x)?, pause_ms: PAUSE_MS };
        let before = Counters::read(&server).await?;
        let began = Instant::now();
        let output =
            async { Ok(client.workflow(POLLER, queue.as_str(), rounds).await?.result::<u32>().await?) };
        ensure!(stage.watch(output).await? == rounds.rounds, "the run returned a wrong result");
        // What the run slept is no cost of a claim.
        let run_s = (began.elapsed().as_secs_f64() - x as f64 * PAUSE_MS as f64 / 1e3).max(0.0);
        let counted = Counters::read(&server).await?.since(before);
        stage.close().await?;
        let per_claim = |total: f64, digits| Some(round(total / counted.leases.max(1.0), digits));
        let figures = vec![
            Some(counted.leases),
            per_claim(run_s * 1e3, 3),
            per_claim(counted.events_loaded, 2),
            per_claim(counted.runs_loaded, 2),
            per_claim(counted.sent_bytes / 1e3, 2),
        ];
        points.push(Point { x, figures });
    }
    Ok(Curve {
        title: "one run that looks and sleeps, again and again",
        x: X { label: "rounds, each a claim", bytes: false },
        columns: vec![
            column("claims", "claims", Drawn::No),
            column("claim_ms", "ms per claim, without the sleep", Drawn::Linear),
            column("events_per_claim", "lines of history read per claim", Drawn::Linear),
            column("runs_per_claim", "runs read per claim", Drawn::No),
            column("sent_kb", "kB sent per claim", Drawn::Linear),
        ],
        points,
        quick: site.quick,
    })
}

async fn payloads(site: &Site<'_>) -> anyhow::Result<Curve> {
    let mut points = Vec::new();
    for x in site.pick(&[100, 10 << 10, 1 << 20], &[100, 10 << 10]) {
        site.say("bytes", x);
        let shape = Shape { payload_len: usize::try_from(x)?, ..Shape::of_steps("payload", 1) };
        // In flight as many as still fit into memory when each has a megabyte; enough to be worth a
        // measurement.
        let load = Load { concurrency: 64, ..site.load(shape) };
        let divisor = if x >= 1 << 20 { 100 } else { 4 };
        let load =
            Load { runs: (load.runs / divisor).max(8), latency_runs: load.latency_runs.min(100), ..load };
        let mut stage = site.open(load.concurrency).await?;
        let figures = checked(measure::measure(&mut stage, &load).await?)?;
        stage.close().await?;
        // Input, result and output.
        let mb_per_s = figures.runs_per_s * 3.0 * x as f64 / 1e6;
        points.push(Point { x, figures: [figures_of(&figures), vec![Some(round(mb_per_s, 2))]].concat() });
    }
    Ok(Curve {
        title: "one step with large payloads",
        x: X { label: "bytes of input, result and output each", bytes: true },
        columns: vec![
            column("runs_per_s", "runs/s", Drawn::Log),
            P50,
            P99,
            SERVER_RSS,
            column("mb_per_s", "MB/s of payloads", Drawn::Linear),
        ],
        points,
        quick: site.quick,
    })
}

impl<'a> Site<'a> {
    fn setup(&self) -> Setup<'a> {
        let place = Place::Processes { servers: 1 };
        Setup { store: self.store, place, scratch: self.scratch, cleanup: self.cleanup }
    }

    async fn open(&self, slots: u32) -> anyhow::Result<Stage> {
        Stage::open(self.setup(), slots).await
    }

    fn load(&self, shape: Shape) -> Load {
        match self.quick {
            true => Load { shape, runs: 40, concurrency: 8, latency_runs: 5 },
            false => Load { shape, runs: self.runs, concurrency: 512, latency_runs: 500 },
        }
    }

    fn pick(&self, full: &[u64], quick: &[u64]) -> Vec<u64> {
        if self.quick { quick.to_vec() } else { full.to_vec() }
    }

    fn say(&self, what: &str, x: u64) {
        output::note(&format!("measuring with {x} {what}"));
    }
}

/// In the order of `RUNS_PER_S`, `P50`, `P99`, `SERVER_RSS`.
fn figures_of(figures: &Figures) -> Vec<Option<f64>> {
    vec![Some(figures.runs_per_s), figures.latency_ms.p50, figures.latency_ms.p99, figures.server_rss_mb]
}

/// Figures with errors in them are no point of a curve.
fn checked(figures: Figures) -> anyhow::Result<Figures> {
    figures::verdict(&[&figures])?;
    Ok(figures)
}
