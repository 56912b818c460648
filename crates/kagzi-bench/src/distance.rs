//! What a database on another machine costs: w3 with business ids on PostgreSQL, as it is and with a round
//! trip that takes longer, in alternation.

use crate::cleanup::Cleanup;
use crate::delay_proxy::DelayProxy;
use crate::figures::{self, Figures};
use crate::measure;
use crate::percentile::round;
use crate::stage::{Place, Setup, Stage};
use crate::store::BenchStore;
use crate::workload::{Load, Shape};
use kagzi_shell::output::{self, Format};
use kagzi_shell::table;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Duration;

#[derive(clap::Args)]
pub struct Args {
    /// A PostgreSQL server on which a scratch database may be created.
    #[arg(long, value_name = "postgres://…")]
    store: String,
    /// By how much a round trip to the database takes longer.
    #[arg(long, default_value_t = 1.0, value_name = "MS")]
    delay_ms: f64,
    /// How many runs to complete at full load, in each measurement.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    runs: u64,
    /// How many runs are in flight at full load.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    concurrency: u32,
    /// How many runs to time one at a time.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    latency_runs: u64,
    /// How often both are measured.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Where to put the scratch directory.
    #[arg(long, value_name = "DIR", default_value = ".")]
    scratch: PathBuf,
    /// Print one JSON object; the same as -o json.
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct Distance {
    delay_ms: f64,
    near: Vec<Figures>,
    far: Vec<Figures>,
    near_runs_per_s: f64,
    far_runs_per_s: f64,
    /// Far as a part of near.
    share: f64,
}

pub async fn perform(args: &Args, format: Format, cleanup: &Cleanup) -> anyhow::Result<()> {
    let proxy = DelayProxy::before(&args.store, Duration::from_secs_f64(args.delay_ms / 1e3))?;
    let near_store = BenchStore::Postgres(args.store.clone());
    let far_store = BenchStore::Postgres(proxy.url(&args.store));
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for turn in 1..=args.rounds {
        output::note(&format!("round {turn} of {}: near, then far", args.rounds));
        near.push(one(args, &near_store, cleanup).await?);
        far.push(one(args, &far_store, cleanup).await?);
    }
    let mean = |all: &[Figures]| all.iter().map(|one| one.runs_per_s).sum::<f64>() / all.len() as f64;
    let (near_runs_per_s, far_runs_per_s) = (mean(&near), mean(&far));
    let share = round(far_runs_per_s / near_runs_per_s.max(0.001), 3);
    let near_runs_per_s = round(near_runs_per_s, 1);
    let far_runs_per_s = round(far_runs_per_s, 1);
    let delay_ms = args.delay_ms;
    let measured = Distance { delay_ms, near, far, near_runs_per_s, far_runs_per_s, share };
    match format {
        Format::Json => output::print(&serde_json::to_string(&measured)?)?,
        Format::Table => output::print(&text(&measured))?,
    }
    figures::verdict(&measured.near.iter().chain(&measured.far).collect::<Vec<_>>())
}

async fn one(args: &Args, store: &BenchStore, cleanup: &Cleanup) -> anyhow::Result<Figures> {
    let load = Load {
        shape: Shape { named: true, ..Shape::of_steps("w3-ids", 3) },
        runs: args.runs,
        concurrency: args.concurrency,
        latency_runs: args.latency_runs,
    };
    let place = Place::Processes { servers: 1 };
    let setup = Setup { store, place, scratch: &args.scratch, cleanup };
    let mut stage = Stage::open(setup, load.concurrency).await?;
    let measured = measure::measure(&mut stage, &load).await;
    stage.close().await?;
    measured
}

fn text(measured: &Distance) -> String {
    let mut table = table::with_columns(&["ROUND", "WHERE", "RUNS/S", "P50 MS", "P99 MS", "ERRORS"]);
    let ms = |value: Option<f64>| value.map(|ms| ms.to_string()).unwrap_or_default();
    for (turn, (near, far)) in measured.near.iter().zip(&measured.far).enumerate() {
        for (place, figures) in [("near", near), ("far", far)] {
            table.add_row([
                (turn + 1).to_string(),
                place.to_owned(),
                figures.runs_per_s.to_string(),
                ms(figures.latency_ms.p50),
                ms(figures.latency_ms.p99),
                figures.errors.to_string(),
            ]);
        }
    }
    format!(
        "{}\n\n{} ms further away: {} of {} runs/s, {:.0} %",
        table::text(table),
        measured.delay_ms,
        measured.far_runs_per_s,
        measured.near_runs_per_s,
        measured.share * 100.0
    )
}
