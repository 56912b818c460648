//! `kagzi bench`: what this machine does with Kagzi, and what it could do at all.

mod compare;
mod driver;
mod figures;
mod limits;
mod measure;
mod percentile;
pub mod progress;
mod resident_memory;
mod scratch;
mod stage;
pub mod worker;
pub mod workload;

use crate::address::Address;
use crate::exit::Trouble;
use crate::output::Format;
use crate::session::Session;
use crate::stop;
use kagzi_server::StoreUrl;
use std::path::PathBuf;
use workload::{Load, Workload};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    other: Option<Other>,
    #[command(flatten)]
    load: LoadArgs,
}

#[derive(clap::Subcommand)]
enum Other {
    /// Measure what this machine's disk, SQLite and gRPC can do at all.
    Limits(limits::Args),
    /// Measure limits and workloads together and print each figure as a share of its limit.
    Compare(compare::Args),
}

#[derive(clap::Args)]
struct LoadArgs {
    /// What each run does.
    #[arg(long, value_enum, default_value_t = Workload::W3)]
    workload: Workload,
    /// Where the server keeps its data: `sqlite` or `turso` (a scratch file that is removed afterwards) or a
    /// `postgres://` URL of a scratch database of yours.
    #[arg(long, default_value = "sqlite", value_name = "STORE", value_parser = bench_store)]
    store: BenchStore,
    /// How many runs to complete at full load.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    runs: u64,
    /// How many runs are in flight at full load.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    concurrency: u32,
    /// How many runs to time one at a time.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    latency_runs: u64,
    /// Server, worker and client in one process (not available yet).
    #[arg(long)]
    embedded: bool,
    /// Use a server that runs already instead of starting one.
    #[arg(long, value_name = "ADDR", conflicts_with = "embedded")]
    addr: Option<Address>,
    /// Where to put the scratch directory: the disk that is measured.
    #[arg(long, value_name = "DIR", default_value = ".")]
    scratch: PathBuf,
    /// Print one JSON object; the same as -o json.
    #[arg(long)]
    json: bool,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let format = |json: bool| if json { Format::Json } else { session.format };
    let work = async {
        match args.other {
            Some(Other::Limits(args)) => limits::perform(&args, format(args.json)).await,
            Some(Other::Compare(args)) => compare::perform(&args, format(args.json)).await,
            None => one_workload(args.load, session.format).await,
        }
    };
    tokio::select! {
        done = work => done,
        heard = stop::requested() => heard.and_then(|()| anyhow::bail!("stopped; nothing was left behind")),
    }
}

async fn one_workload(args: LoadArgs, format: Format) -> anyhow::Result<()> {
    let format = if args.json { Format::Json } else { format };
    if args.embedded {
        return Err(Trouble::usage("--embedded is not available yet"));
    }
    let load = Load {
        shape: args.workload.shape().ok_or_else(|| args.workload.unavailable())?,
        runs: args.runs,
        concurrency: args.concurrency,
        latency_runs: args.latency_runs,
    };
    let figures = measure::measure(&load, &args.store, &args.scratch, args.addr).await?;
    figures::print(&figures, format)?;
    figures::verdict(&[&figures])
}

/// The store that is measured.
#[derive(Clone, PartialEq, Eq)]
pub enum BenchStore {
    /// A scratch file.
    Sqlite,
    /// A scratch file of Turso's.
    Turso,
    /// A database that the caller made for the purpose.
    Given(StoreUrl),
}

impl BenchStore {
    /// The word in the figures.
    pub fn name(&self) -> &'static str {
        match self {
            BenchStore::Sqlite | BenchStore::Given(StoreUrl::Sqlite(_)) => "sqlite",
            BenchStore::Turso | BenchStore::Given(StoreUrl::Turso(_)) => "turso",
            BenchStore::Given(StoreUrl::Postgres(_)) => "postgres",
            BenchStore::Given(StoreUrl::Memory) => "memory",
        }
    }
}

fn bench_store(text: &str) -> Result<BenchStore, String> {
    match text {
        "sqlite" => Ok(BenchStore::Sqlite),
        // Parsed as well: a build without Turso has a message for it.
        "turso" => "turso:bench".parse::<StoreUrl>().map(|_| BenchStore::Turso),
        url => url.parse().map(BenchStore::Given),
    }
}
