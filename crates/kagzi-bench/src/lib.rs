//! `kagzi bench`: what this machine does with Kagzi, and what it could do at all.

mod backlog;
mod burst;
mod cleanup;
mod compare;
mod connection;
mod counters;
mod delay_proxy;
mod distance;
mod driver;
mod fan_out;
mod figures;
mod fill;
mod growth;
mod guard;
mod history;
mod limits;
mod measure;
mod neighbour;
mod percentile;
mod recovery;
mod resident_memory;
mod signals;
mod sleepers;
mod stage;
mod store;
mod waiters;
pub mod worker;
pub mod workload;
mod written_bytes;

use cleanup::Cleanup;
use figures::Figures;
use kagzi_shell::address::Address;
use kagzi_shell::output::Format;
use kagzi_shell::stop;
use kagzi_shell::trouble::Trouble;
use stage::{Place, Stage};
use std::path::PathBuf;
use store::BenchStore;
use workload::{Load, Workload};

/// As many children as a run may have.
const CHILDREN_MAX: u64 = 10_000;

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
    /// Measure what this machine's disk, SQLite, gRPC and PostgreSQL can do at all.
    Limits(limits::Args),
    /// Measure limits and workloads together and print each figure as a share of its limit.
    Compare(compare::Args),
    /// Compare a short w3 with the machine's limits, and that ratio with the recorded one.
    Guard(guard::Args),
    /// Measure how costs grow with runs in the store, workers, steps, claims and payloads; writes figures and
    /// plots.
    Growth(growth::Args),
    /// Measure what a PostgreSQL on another machine costs: w3 with business ids, near and further away.
    Distance(distance::Args),
}

#[derive(clap::Args)]
struct LoadArgs {
    /// What each run does.
    #[arg(long, value_enum, default_value_t = Workload::W3)]
    workload: Workload,
    /// Where the server keeps its data: `sqlite`, `turso`, or `postgres://…` of a server on which a scratch
    /// database may be created. All are removed afterwards.
    #[arg(long, default_value = "sqlite", value_name = "STORE", value_parser = store::parse)]
    store: BenchStore,
    /// How many runs to complete at full load; for sleepers how many sleep, for fan-out how many children,
    /// for burst how many signals, for recovery how many lose their worker [default: 20000, sleepers and
    /// burst 10000, fan-out and recovery 1000].
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    runs: Option<u64>,
    /// How many runs are in flight at full load.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    concurrency: u32,
    /// How many runs to time one at a time.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    latency_runs: u64,
    /// How many runs sleep in the store before `backlog` is measured, or wait for a signal before `waiters`
    /// is.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    backlog: u64,
    /// How many steps the run of `history` has.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(2..=90_000))]
    steps: u32,
    /// How many servers share the database of `servers`.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=16))]
    servers: u32,
    /// Server, worker and client in this one process.
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

pub async fn perform(args: Args, chosen: Format) -> anyhow::Result<()> {
    let format = |json: bool| if json { Format::Json } else { chosen };
    let cleanup = Cleanup::default();
    let work = async {
        match args.other {
            Some(Other::Limits(args)) => limits::perform(&args, format(args.json), &cleanup).await,
            Some(Other::Compare(args)) => compare::perform(&args, format(args.json), &cleanup).await,
            Some(Other::Guard(args)) => guard::perform(&args, format(args.json), &cleanup).await,
            Some(Other::Growth(args)) => growth::perform(&args, format(args.json), &cleanup).await,
            Some(Other::Distance(args)) => distance::perform(&args, format(args.json), &cleanup).await,
            None => one_workload(args.load, chosen, &cleanup).await,
        }
    };
    let ended = tokio::select! {
        done = work => done,
        heard = stop::requested() => heard.and_then(|()| anyhow::bail!("stopped; nothing was left behind")),
    };
    // The work is dropped by now, and with it its processes: nobody writes to what is removed.
    cleanup.run().await;
    ended
}

async fn one_workload(args: LoadArgs, format: Format, cleanup: &Cleanup) -> anyhow::Result<()> {
    let format = if args.json { Format::Json } else { format };
    let load = Load {
        shape: args.workload.shape(),
        runs: args.runs.unwrap_or(args.workload.runs()),
        concurrency: args.concurrency,
        latency_runs: args.latency_runs,
    };
    let servers = if args.workload == Workload::Servers { args.servers } else { 1 };
    if args.workload == Workload::Servers && !args.store.is_postgres() {
        return Err(Trouble::usage("several servers need one PostgreSQL: --store postgres://…"));
    }
    let kills_its_worker = matches!(args.workload, Workload::History | Workload::Recovery);
    if kills_its_worker && (args.embedded || args.addr.is_some()) {
        return Err(Trouble::usage("this workload kills its worker, so it needs processes of its own"));
    }
    if args.workload == Workload::FanOut && load.runs > CHILDREN_MAX {
        return Err(Trouble::usage(format!("a run may have {CHILDREN_MAX} children: give fewer --runs")));
    }
    if args.workload == Workload::Backlog && args.addr.is_some() {
        return Err(Trouble::usage("backlog fills its store from outside, so it needs a server of its own"));
    }
    let place = match (args.embedded, args.addr) {
        (true, _) => Place::Embedded,
        (false, Some(address)) => Place::There(address),
        (false, None) => Place::Processes { servers },
    };
    let setup = stage::Setup { store: &args.store, place, scratch: &args.scratch, cleanup };
    let mut stage = match kills_its_worker {
        true => Stage::without_workers(setup, load.concurrency).await?,
        false => Stage::open(setup, load.concurrency).await?,
    };
    let measured = match args.workload {
        Workload::W0 | Workload::W3 | Workload::W10 | Workload::Servers => {
            measure::measure(&mut stage, &load).await
        }
        Workload::Sleepers => sleepers::measure(&mut stage, &load).await,
        Workload::Backlog => backlog::measure(&mut stage, &load, args.backlog).await,
        Workload::History => history::measure(&mut stage, &load, args.steps).await,
        Workload::Recovery => recovery::measure(&mut stage, &load).await,
        Workload::FanOut => fan_out::measure(&mut stage, &load).await,
        Workload::Signals => signals::measure(&mut stage, &load).await,
        Workload::Waiters => waiters::measure(&mut stage, &load, args.backlog).await,
        Workload::Burst => burst::measure(&mut stage, &load).await,
    };
    let closed = stage.close().await;
    let figures: Figures = measured?;
    closed?;
    figures::print(&figures, format)?;
    figures::verdict(&[&figures])
}
