//! Has Kagzi become slower? A short w3 beside the limits of the same machine in the same minute, as a ratio,
//! because figures of two machines or two days cannot be compared, and ratios nearly can.

use crate::cleanup::Cleanup;
use crate::limits::{self, Limits};
use crate::measure;
use crate::percentile::round;
use crate::stage::{Place, Setup, Stage};
use crate::store::BenchStore;
use crate::workload::{Load, Workload};
use anyhow::Context;
use kagzi_shell::output::{self, Format};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Below this share of the recorded ratio something is wrong; above it, it is noise.
const ALARM: f64 = 0.5;

#[derive(clap::Args)]
pub struct Args {
    /// The recorded ratio.
    #[arg(long, value_name = "FILE", default_value = "bench/guard.json")]
    file: PathBuf,
    /// Write the ratio down instead of comparing it; on a quiet machine, with a release build.
    #[arg(long)]
    record: bool,
    /// How many runs of w3 to complete.
    #[arg(long, default_value_t = 4_000, value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    runs: u64,
    /// Where to put the scratch directory: the disk that is measured.
    #[arg(long, value_name = "DIR", default_value = ".")]
    scratch: PathBuf,
    /// Print one JSON object; the same as -o json.
    #[arg(long)]
    pub json: bool,
}

/// What is written down.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    /// w3 runs per second for each gRPC call per second: w3 waits for the processor, not for the disk.
    ratio: f64,
    w3_runs_per_s: f64,
    grpc_unary_per_s: f64,
    sqlite_commits_per_s: f64,
}

#[derive(Serialize)]
struct Guarded {
    #[serde(flatten)]
    measured: Record,
    recorded_ratio: Option<f64>,
    /// Measured ratio as a share of the recorded one.
    share: Option<f64>,
    verdict: &'static str,
}

/// How often a ratio is measured that looks too slow. A neighbour on the machine is gone by then; a slow
/// program is not.
const ATTEMPTS: usize = 3;

pub async fn perform(args: &Args, format: Format, cleanup: &Cleanup) -> anyhow::Result<()> {
    let mut measured = measure(args, cleanup).await?;
    if args.record {
        let text = format!("{}\n", output::json(&measured));
        std::fs::write(&args.file, text)
            .with_context(|| format!("could not write {}", args.file.display()))?;
    }
    let recorded = match std::fs::read(&args.file) {
        Ok(text) => Some(serde_json::from_slice::<Record>(&text).context("the record is not readable")?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error).with_context(|| format!("could not read {}", args.file.display())),
    };
    let mut guarded = judge(measured, recorded.clone(), cfg!(debug_assertions));
    for _ in 1..ATTEMPTS {
        if guarded.verdict != TOO_SLOW {
            break;
        }
        measured = measure(args, cleanup).await?;
        guarded = judge(measured, recorded.clone(), cfg!(debug_assertions));
    }
    match format {
        Format::Json => output::print(&serde_json::to_string(&guarded)?)?,
        Format::Table => output::print(&text(&guarded))?,
    }
    anyhow::ensure!(guarded.verdict != TOO_SLOW, "w3 is less than half as fast as recorded");
    Ok(())
}

async fn measure(args: &Args, cleanup: &Cleanup) -> anyhow::Result<Record> {
    let limits = limits::measure(&args.scratch, None, cleanup).await?;
    let load = Load { shape: Workload::W3.shape(), runs: args.runs, concurrency: 256, latency_runs: 20 };
    let place = Place::Processes { servers: 1 };
    let setup = Setup { store: &BenchStore::Sqlite, place, scratch: &args.scratch, cleanup };
    let mut stage = Stage::open(setup, load.concurrency).await?;
    let measured = measure::measure(&mut stage, &load).await;
    stage.close().await?;
    let figures = measured?;
    crate::figures::verdict(&[&figures])?;
    Ok(record(figures.runs_per_s, &limits))
}

fn record(w3_runs_per_s: f64, limits: &Limits) -> Record {
    Record {
        ratio: round(w3_runs_per_s / limits.grpc_unary_per_s, 4),
        w3_runs_per_s,
        grpc_unary_per_s: limits.grpc_unary_per_s,
        sqlite_commits_per_s: limits.sqlite_commits_per_s,
    }
}

const TOO_SLOW: &str = "too slow";

fn judge(measured: Record, recorded: Option<Record>, debug_build: bool) -> Guarded {
    let recorded_ratio = recorded.map(|recorded| recorded.ratio);
    let share = recorded_ratio.map(|recorded| round(measured.ratio / recorded, 2));
    let verdict = match share {
        None => "nothing recorded to compare with",
        // Unoptimised code of ours beside unoptimised gRPC has a ratio of its own.
        Some(_) if debug_build => "not judged: a debug build",
        Some(share) if share < ALARM => TOO_SLOW,
        Some(_) => "good",
    };
    Guarded { measured, recorded_ratio, share, verdict }
}

fn text(guarded: &Guarded) -> String {
    let Record { ratio, w3_runs_per_s, grpc_unary_per_s, .. } = &guarded.measured;
    let compared = match (guarded.recorded_ratio, guarded.share) {
        (Some(recorded), Some(share)) => format!(", {share} of the recorded {recorded}"),
        (_, _) => String::new(),
    };
    format!(
        "w3 {w3_runs_per_s:.0} runs/s beside {grpc_unary_per_s:.0} gRPC calls/s: ratio {ratio}{compared}: {}",
        guarded.verdict
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ratio: f64) -> Record {
        Record { ratio, w3_runs_per_s: 4000.0, grpc_unary_per_s: 40_000.0, sqlite_commits_per_s: 5000.0 }
    }

    #[test]
    fn only_less_than_half_of_the_recorded_ratio_is_too_slow() {
        assert_eq!(judge(of(0.051), Some(of(0.1)), false).verdict, "good");
        assert_eq!(judge(of(0.049), Some(of(0.1)), false).verdict, TOO_SLOW);
        assert_eq!(judge(of(0.2), Some(of(0.1)), false).share, Some(2.0));
    }

    #[test]
    fn a_debug_build_and_a_missing_record_are_not_judged() {
        assert_eq!(judge(of(0.001), Some(of(0.1)), true).verdict, "not judged: a debug build");
        assert_eq!(judge(of(0.001), None, false).share, None);
        assert!(text(&judge(of(0.1), None, false)).contains("ratio 0.1: nothing recorded"));
    }
}
