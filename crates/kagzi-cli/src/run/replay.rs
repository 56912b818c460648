//! Bulk replay: after a bug is mended, the runs that it failed go on or begin again, at a rate of your
//! choice.

use super::status;
use crate::exit::Trouble;
use crate::output::{self, Format};
use crate::session::Session;
use kagzi::Client;
use kagzi::client::RunStatus;
use kagzi::error::Code;
use kagzi_shell::progress;
use serde::Serialize;
use std::time::Duration;

#[derive(clap::Args)]
pub struct Args {
    /// Which ended runs: failed, timed-out or cancelled.
    #[arg(long, default_value = "failed", value_parser = status::parse)]
    status: RunStatus,
    /// Only runs of this workflow type.
    #[arg(long = "type", value_name = "TYPE", default_value = "", hide_default_value = true)]
    workflow_type: String,
    /// Only runs on this queue.
    #[arg(long, default_value = "", hide_default_value = true)]
    queue: String,
    /// Only runs that ended with this error code.
    #[arg(long, value_name = "CODE", default_value = "", hide_default_value = true)]
    error_code: String,
    /// `retry` goes on from the failed step, `restart` begins a new run with the same input.
    #[arg(long, value_enum, default_value_t = How::Retry)]
    how: How,
    /// Runs per second.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: u32,
    /// At most this many.
    #[arg(long, default_value_t = 100_000)]
    limit: usize,
    /// Only count them.
    #[arg(long)]
    dry_run: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum How {
    Retry,
    Restart,
}

#[derive(Serialize)]
struct Replayed {
    matching: usize,
    replayed: usize,
    refused: usize,
    dry_run: bool,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    let ended = [RunStatus::Failed, RunStatus::TimedOut, RunStatus::Cancelled];
    if !ended.contains(&args.status) {
        return Err(Trouble::usage("only failed, timed-out or cancelled runs can be replayed"));
    }
    let client = session.client().await?;
    // All are found before the first is replayed, so that none is met twice.
    let ids = matching(&client, &args).await?;
    let mut done = Replayed { matching: ids.len(), replayed: 0, refused: 0, dry_run: args.dry_run };
    if !args.dry_run {
        replay(&client, &args, &ids, &mut done).await?;
    }
    match session.format {
        Format::Json => output::print_json(&done)?,
        Format::Table if done.dry_run => {
            output::note(&format!("{} runs match; without --dry-run they would be replayed", done.matching));
        }
        Format::Table => output::note(&format!(
            "{} of {} runs replayed, {} refused because they had moved on",
            done.replayed, done.matching, done.refused
        )),
    }
    Ok(())
}

async fn matching(client: &Client, args: &Args) -> anyhow::Result<Vec<String>> {
    let runs = client.runs().status(args.status).workflow_type(&args.workflow_type).task_queue(&args.queue);
    let runs = runs.error_code(&args.error_code).page_size(1000);
    let (mut ids, mut token) = (Vec::new(), String::new());
    loop {
        let page = runs.page(token).await?;
        ids.extend(page.rows.into_iter().map(|run| run.run_id));
        ids.truncate(args.limit);
        match page.next {
            Some(next) if ids.len() < args.limit => token = next,
            Some(_) | None => return Ok(ids),
        }
    }
}

async fn replay(client: &Client, args: &Args, ids: &[String], done: &mut Replayed) -> anyhow::Result<()> {
    let bar = progress::bar("replaying", ids.len() as u64);
    let mut pace = tokio::time::interval(Duration::from_secs(1) / args.rate);
    for id in ids {
        pace.tick().await;
        let run = client.handle(id);
        let answer = match args.how {
            How::Retry => run.retry().await.map(drop),
            How::Restart => run.restart().await.map(drop),
        };
        match answer {
            Ok(()) => done.replayed += 1,
            Err(error) if error.code() == Some(Code::FailedPrecondition) => done.refused += 1,
            Err(error) => return Err(error.into()),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}
