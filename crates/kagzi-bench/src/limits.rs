//! What this machine can do at all. A figure of Kagzi means something only beside these.

mod disk;
mod grpc;
mod grpc_echo;
mod postgres;
mod sqlite;

use crate::cleanup::Cleanup;
use crate::store::scratch_directory;
use kagzi_shell::output::{self, Format};
use kagzi_shell::table;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long each limit is measured: the disk's rate varies within a second, less so over two.
const SPAN: Duration = Duration::from_secs(2);

#[derive(clap::Args)]
pub struct Args {
    /// Measure PostgreSQL too, in a scratch database on this server.
    #[arg(long, value_name = "postgres://…")]
    store: Option<String>,
    /// Where to put the scratch directory: the disk that is measured.
    #[arg(long, value_name = "DIR", default_value = ".")]
    scratch: PathBuf,
    /// Print one JSON object; the same as -o json.
    #[arg(long)]
    pub json: bool,
}

/// Per second. The JSON form is a contract with those who keep records.
#[derive(Debug, Serialize)]
pub struct Limits {
    /// 4 KiB appended and synced, by one writer.
    pub fdatasync_per_s: f64,
    /// One row per commit, WAL with synchronous=FULL, by one writer.
    pub sqlite_commits_per_s: f64,
    /// The same in batches of 100 rows.
    pub sqlite_rows_per_s: f64,
    pub grpc_unary_per_s: f64,
    /// Messages each way.
    pub grpc_stream_msgs_per_s: f64,
    /// One row per commit by one client; null unless asked for.
    pub postgres_commits_per_s: Option<f64>,
    pub postgres_rows_per_s: Option<f64>,
}

pub async fn perform(args: &Args, format: Format, cleanup: &Cleanup) -> anyhow::Result<()> {
    let limits = measure(&args.scratch, args.store.as_deref(), cleanup).await?;
    match format {
        Format::Json => output::print(&serde_json::to_string(&limits)?),
        Format::Table => output::print(&as_fields(&limits)),
    }
}

pub async fn measure(scratch: &Path, postgres: Option<&str>, cleanup: &Cleanup) -> anyhow::Result<Limits> {
    output::note("measuring the limits of this machine");
    let path = scratch_directory(scratch, cleanup)?;
    // One after the other: together they would measure each other.
    let (fdatasync_per_s, sqlite) = tokio::task::spawn_blocking(move || {
        anyhow::Ok((disk::fdatasync_per_s(&path, SPAN)?, sqlite::rates(&path, SPAN)?))
    })
    .await??;
    let grpc = grpc::rates(SPAN).await?;
    let postgres = match postgres {
        Some(url) => Some(postgres::rates(url, SPAN, cleanup).await?),
        None => None,
    };
    Ok(Limits {
        fdatasync_per_s,
        sqlite_commits_per_s: sqlite.commits_per_s,
        sqlite_rows_per_s: sqlite.rows_per_s,
        grpc_unary_per_s: grpc.unary_per_s,
        grpc_stream_msgs_per_s: grpc.stream_msgs_per_s,
        postgres_commits_per_s: postgres.as_ref().map(|rates| rates.commits_per_s),
        postgres_rows_per_s: postgres.as_ref().map(|rates| rates.rows_per_s),
    })
}

pub fn as_fields(limits: &Limits) -> String {
    let rate = |value: f64| Some(format!("{value:.0}/s"));
    table::text(table::of_fields([
        ("fdatasync of 4 KiB", rate(limits.fdatasync_per_s)),
        ("SQLite commits", rate(limits.sqlite_commits_per_s)),
        ("SQLite rows in hundreds", rate(limits.sqlite_rows_per_s)),
        ("gRPC calls, 64 in flight", rate(limits.grpc_unary_per_s)),
        ("gRPC stream messages", rate(limits.grpc_stream_msgs_per_s)),
        ("PostgreSQL commits", limits.postgres_commits_per_s.and_then(rate)),
        ("PostgreSQL rows in hundreds", limits.postgres_rows_per_s.and_then(rate)),
    ]))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn sample() -> Limits {
        Limits {
            fdatasync_per_s: 3_800.0,
            sqlite_commits_per_s: 5_000.0,
            sqlite_rows_per_s: 250_000.0,
            grpc_unary_per_s: 38_000.0,
            grpc_stream_msgs_per_s: 400_000.0,
            postgres_commits_per_s: None,
            postgres_rows_per_s: None,
        }
    }

    #[test]
    fn the_json_object_has_the_documented_shape() {
        insta::assert_snapshot!(output::json(&sample()));
    }

    #[test]
    fn the_table_leaves_out_what_was_not_measured() {
        insta::assert_snapshot!(as_fields(&sample()));
    }
}
