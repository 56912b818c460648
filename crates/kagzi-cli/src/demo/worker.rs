//! The worker process of the tour, made to be killed.

use crate::logs::{self, LogFormat};
use crate::session::Session;
use crate::{stop, worker_seam};
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

#[derive(clap::Args)]
pub struct Args {
    /// The tour's scratch directory.
    #[arg(long)]
    dir: PathBuf,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    logs::install(LogFormat::Text);
    let parent_left = CancellationToken::new();
    stop::when_stdin_closes(parent_left.clone());
    tokio::select! {
        ended = worker_seam::work_on_orders(&session.address, args.dir) => ended,
        () = parent_left.cancelled() => Ok(()),
    }
}
