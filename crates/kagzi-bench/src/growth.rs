//! How costs grow: with the runs in the store, with workers, with a run's history, claims and payloads.

mod axes;
mod curve;
mod svg;

use crate::cleanup::Cleanup;
use crate::store::{self, BenchStore};
use anyhow::Context;
use axes::Axis;
use clap::ValueEnum;
use curve::Curve;
use kagzi_shell::output::{self, Format};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Args {
    /// The store that is measured: `sqlite`, `turso` or `postgres://…`.
    #[arg(long, default_value = "sqlite", value_name = "STORE", value_parser = store::parse)]
    store: BenchStore,
    /// Only this; what the file says about the others stays.
    #[arg(long, value_enum)]
    only: Option<Axis>,
    /// Points so few and small that they say nothing about speed, to see whether everything works.
    #[arg(long)]
    quick: bool,
    /// How many runs to complete at full load for each point, fewer with large payloads [default: 20000].
    #[arg(long, conflicts_with = "quick", value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    runs: Option<u64>,
    /// Where growth.json and growth-*.svg are written.
    #[arg(long, value_name = "DIR", default_value = "bench")]
    out: PathBuf,
    /// Where to put the scratch directory: the disk that is measured.
    #[arg(long, value_name = "DIR", default_value = ".")]
    scratch: PathBuf,
    /// Print one JSON object; the same as -o json.
    #[arg(long)]
    pub json: bool,
}

pub async fn perform(args: &Args, format: Format, cleanup: &Cleanup) -> anyhow::Result<()> {
    let (store, scratch, quick) = (&args.store, &args.scratch, args.quick);
    let site = axes::Site { store, scratch, cleanup, quick, runs: args.runs.unwrap_or(20_000) };
    let mut measured = Map::new();
    for axis in args.only.map_or(Axis::value_variants().to_vec(), |axis| vec![axis]) {
        let curve = axis.measure(&site).await?;
        // After each axis: an hour's figures must not be lost with the last one.
        keep(&args.out, args.store.name(), axis, &curve)?;
        if format == Format::Table {
            output::print(&curve.text())?;
        }
        measured.insert(axis.name().to_owned(), curve.json());
    }
    match format {
        Format::Json => output::print(&Value::Object(measured).to_string()),
        Format::Table => Ok(()),
    }
}

/// Writes the plot, and the figures beside those of other axes and stores.
fn keep(out: &Path, store: &str, axis: Axis, curve: &Curve) -> anyhow::Result<()> {
    std::fs::create_dir_all(out).with_context(|| format!("could not create {}", out.display()))?;
    let plot = match store {
        "sqlite" => format!("growth-{}.svg", axis.name()),
        other => format!("growth-{}-{other}.svg", axis.name()),
    };
    write(&out.join(plot), &curve.plot(store))?;
    let file = out.join("growth.json");
    let mut all: Map<String, Value> = match std::fs::read(&file) {
        Ok(text) => {
            serde_json::from_slice(&text).with_context(|| format!("{} is no JSON", file.display()))?
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Map::new(),
        Err(error) => return Err(error).with_context(|| format!("could not read {}", file.display())),
    };
    let of_store = all.entry(store).or_insert_with(|| Value::Object(Map::new()));
    of_store[axis.name()] = curve.json();
    write(&file, &format!("{}\n", output::json(&all)))
}

fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(file, text).with_context(|| format!("could not write {}", file.display()))
}
