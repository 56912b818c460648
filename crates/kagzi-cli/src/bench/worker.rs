//! The worker process that a benchmark starts.

use crate::logs::{self, LogFormat};
use crate::session::Session;
use crate::{stop, worker_seam};
use tokio_util::sync::CancellationToken;

#[derive(clap::Args)]
pub struct Args {
    /// The benchmark's own queue.
    #[arg(long)]
    queue: String,
    #[arg(long)]
    max_concurrent: u32,
}

/// What to execute: runs of [`super::workload::WORKFLOW_TYPE`] on this queue.
pub struct BenchWork {
    pub queue: String,
    pub max_concurrent: u32,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    logs::install(LogFormat::Text);
    let parent_left = CancellationToken::new();
    stop::when_stdin_closes(parent_left.clone());
    let work = BenchWork { queue: args.queue, max_concurrent: args.max_concurrent };
    tokio::select! {
        ended = worker_seam::work_on_bench(&session.address, work) => ended,
        () = parent_left.cancelled() => Ok(()),
    }
}
