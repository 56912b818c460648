//! Each figure beside the limit of the same machine in the same minutes: the only comparison that means
//! something.

use crate::cleanup::Cleanup;
use crate::figures::{self, Figures};
use crate::limits::{self, Limits};
use crate::measure;
use crate::percentile::round;
use crate::stage::{Place, Setup, Stage};
use crate::store::{self, BenchStore};
use crate::workload::{Load, Shape, Workload};
use kagzi_shell::output::{self, Format};
use kagzi_shell::table;
use serde::Serialize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Args {
    /// The store that is measured: `sqlite`, `turso` or `postgres://…`.
    #[arg(long, default_value = "sqlite", value_name = "STORE", value_parser = store::parse)]
    store: BenchStore,
    /// How many runs of each workload to complete at full load.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    runs: u64,
    /// How many runs are in flight at full load.
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    concurrency: u32,
    /// How many runs to time one at a time.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    latency_runs: u64,
    /// Where to put the scratch directory: the disk that is measured.
    #[arg(long, value_name = "DIR", default_value = ".")]
    scratch: PathBuf,
    /// Print one JSON object; the same as -o json.
    #[arg(long)]
    pub json: bool,
}

#[derive(Serialize)]
struct Comparison {
    limits: Limits,
    workloads: Vec<Compared>,
}

#[derive(Serialize)]
struct Compared {
    #[serde(flatten)]
    figures: Figures,
    /// What a run leaves durably: one record per step and one for the run itself.
    records_per_s: f64,
    share_of_sqlite_rows: f64,
    /// Null unless PostgreSQL is measured.
    share_of_postgres_rows: Option<f64>,
    /// The p50 latency, in commits of one row by one writer.
    latency_in_commits: Option<f64>,
}

pub async fn perform(args: &Args, format: Format, cleanup: &Cleanup) -> anyhow::Result<()> {
    let limits = limits::measure(&args.scratch, args.store.postgres(), cleanup).await?;
    let mut workloads = Vec::new();
    for shape in [Workload::W0, Workload::W3, Workload::W10].map(Workload::shape) {
        let load =
            Load { shape, runs: args.runs, concurrency: args.concurrency, latency_runs: args.latency_runs };
        let place = Place::Processes { servers: 1 };
        let setup = Setup { store: &args.store, place, scratch: &args.scratch, cleanup };
        let mut stage = Stage::open(setup, load.concurrency).await?;
        let measured = measure::measure(&mut stage, &load).await;
        stage.close().await?;
        workloads.push(compare(shape, measured?, &limits));
    }
    let comparison = Comparison { limits, workloads };

    match format {
        Format::Json => output::print(&serde_json::to_string(&comparison)?)?,
        Format::Table => output::print(&text(&comparison))?,
    }
    figures::verdict(&comparison.workloads.iter().map(|compared| &compared.figures).collect::<Vec<_>>())
}

impl Compared {
    /// Of the store that was measured.
    fn share_of_rows(&self) -> f64 {
        self.share_of_postgres_rows.unwrap_or(self.share_of_sqlite_rows)
    }
}

fn compare(shape: Shape, figures: Figures, limits: &Limits) -> Compared {
    let records_per_s = figures.runs_per_s * f64::from(shape.steps + 1);
    let commits_per_s = limits.postgres_commits_per_s.unwrap_or(limits.sqlite_commits_per_s);
    let commit_ms = 1e3 / commits_per_s;
    Compared {
        records_per_s: round(records_per_s, 1),
        share_of_sqlite_rows: round(records_per_s / limits.sqlite_rows_per_s, 4),
        share_of_postgres_rows: limits.postgres_rows_per_s.map(|rows| round(records_per_s / rows, 4)),
        latency_in_commits: figures.latency_ms.p50.map(|p50| round(p50 / commit_ms, 2)),
        figures,
    }
}

fn text(comparison: &Comparison) -> String {
    let mut table = table::with_columns(&[
        "WORKLOAD",
        "RUNS/S",
        "RECORDS/S",
        "OF ROWS/S",
        "P50 MS",
        "IN COMMITS",
        "P99 MS",
        "SERVER MB",
        "ERRORS",
    ]);
    let or_dash = |value: Option<f64>| value.map_or("-".to_owned(), |value| value.to_string());
    for compared in &comparison.workloads {
        let figures = &compared.figures;
        table.add_row([
            figures.workload.to_owned(),
            figures.runs_per_s.to_string(),
            compared.records_per_s.to_string(),
            format!("{:.1} %", compared.share_of_rows() * 100.0),
            or_dash(figures.latency_ms.p50),
            or_dash(compared.latency_in_commits),
            or_dash(figures.latency_ms.p99),
            or_dash(figures.server_rss_mb),
            figures.errors.to_string(),
        ]);
    }
    format!("{}\n\n{}", limits::as_fields(&comparison.limits), table::text(table))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::tests::sample as sample_figures;
    use crate::limits::tests::sample as sample_limits;

    #[test]
    fn figures_are_shares_of_their_limits() {
        let compared = compare(Workload::W3.shape(), sample_figures(), &sample_limits());

        assert_eq!(compared.records_per_s, 32_000.0);
        assert_eq!(compared.share_of_sqlite_rows, 0.128);
        assert_eq!(compared.latency_in_commits, Some(4.5));
    }

    #[test]
    fn a_comparison_as_json() {
        let compared = compare(Workload::W3.shape(), sample_figures(), &sample_limits());
        let comparison = Comparison { limits: sample_limits(), workloads: vec![compared] };

        insta::assert_snapshot!(output::json(&comparison));
    }
}
