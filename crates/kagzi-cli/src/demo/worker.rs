//! The worker process of the tour, made to be killed.

use super::order::{self, Order};
use crate::logs;
use crate::session::Session;
use crate::stop;
use kagzi::{Worker, WorkflowContext};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

#[derive(clap::Args)]
pub struct Args {
    /// The tour's scratch directory.
    #[arg(long)]
    dir: PathBuf,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    logs::install_plain();
    let parent_left = CancellationToken::new();
    stop::when_stdin_closes(parent_left.clone());
    let mut worker = Worker::builder(session.address.to_string(), order::QUEUE).build().await?;
    let dir: Arc<Path> = args.dir.into();
    worker.register(order::WORKFLOW_TYPE, move |ctx: WorkflowContext, input: Order| {
        let dir = dir.clone();
        async move { order::order(ctx, input, &dir).await }
    });
    tokio::select! {
        ended = worker.run() => Ok(ended?),
        // Without its parent the tour is over: nobody needs what a graceful end would save.
        () = parent_left.cancelled() => Ok(()),
    }
}
