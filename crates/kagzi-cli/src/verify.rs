use crate::exit::Trouble;
use crate::output::{self, Format};
use crate::session::Session;
use kagzi_server::sqlite::{self, Verified};
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Args {
    /// A backup, or the database of a server that may be running.
    file: PathBuf,
}

#[derive(Serialize)]
struct Report {
    file: PathBuf,
    sound: bool,
    schema: u32,
    runs: u64,
    events: u64,
    complaints: Vec<Broken>,
}

#[derive(Serialize)]
struct Broken {
    promise: &'static str,
    count: u64,
    example: String,
}

/// Checks the file and the guarantees that can be seen in it; exit code 1 if one is broken.
pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let report = report(&args.file, check(&args.file).await?);
    match session.format {
        Format::Json => output::print_json(&report)?,
        Format::Table => output::print(&text(&report))?,
    }
    if report.sound { Ok(()) } else { Err(Trouble::Reported { code: 1 }.into()) }
}

/// Fails unless the file keeps every promise.
pub async fn require_sound(file: &Path) -> anyhow::Result<()> {
    let report = report(file, check(file).await?);
    anyhow::ensure!(report.sound, "{}", text(&report));
    Ok(())
}

async fn check(file: &Path) -> anyhow::Result<Verified> {
    let path = file.to_owned();
    let verified = tokio::task::spawn_blocking(move || sqlite::verify(&path)).await?;
    verified.map_err(|error| anyhow::anyhow!("could not check {}: {error}", file.display()))
}

fn report(file: &Path, verified: Verified) -> Report {
    let broken = |complaint: sqlite::Complaint| Broken {
        promise: complaint.promise,
        count: complaint.count,
        example: complaint.example,
    };
    Report {
        file: file.to_owned(),
        sound: verified.complaints.is_empty(),
        schema: verified.schema,
        runs: verified.runs,
        events: verified.events,
        complaints: verified.complaints.into_iter().map(broken).collect(),
    }
}

fn text(report: &Report) -> String {
    let file = report.file.display();
    if report.sound {
        return format!("{file} is sound: {} runs, {} events", report.runs, report.events);
    }
    let line = |broken: &Broken| {
        format!("\n  broken {} time(s): {} (e.g. {})", broken.count, broken.promise, broken.example)
    };
    format!("{file} is damaged{}", report.complaints.iter().map(line).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_is_described_promise_by_promise() {
        let promise = "I11 events are numbered without a gap";
        let complaint = sqlite::Complaint { promise, count: 2, example: "run 7".into() };
        let verified = Verified { schema: 1, runs: 3, events: 9, complaints: vec![complaint] };

        let text = text(&report(Path::new("b.db"), verified));

        assert_eq!(text, format!("b.db is damaged\n  broken 2 time(s): {promise} (e.g. run 7)"));
    }
}
