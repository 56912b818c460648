//! The worker process that a benchmark starts.

use super::workload::{Input, Output, WORKFLOW_TYPE};
use crate::logs;
use crate::session::Session;
use crate::stop;
use kagzi::{Worker, WorkflowContext};
use tokio_util::sync::CancellationToken;

#[derive(clap::Args)]
pub struct Args {
    /// The benchmark's own queue.
    #[arg(long)]
    queue: String,
    #[arg(long)]
    max_concurrent: u32,
}

pub async fn perform(args: Args, session: &Session) -> anyhow::Result<()> {
    logs::install_plain();
    let parent_left = CancellationToken::new();
    stop::when_stdin_closes(parent_left.clone());
    let builder = Worker::builder(session.address.to_string(), args.queue);
    let mut worker = builder.max_concurrent(args.max_concurrent).build().await?;
    worker.register(WORKFLOW_TYPE, bench);
    tokio::select! {
        ended = worker.run() => Ok(ended?),
        // Without its parent the measurement is over.
        () = parent_left.cancelled() => Ok(()),
    }
}

/// As many steps as the input asks for, one after the other.
async fn bench(ctx: WorkflowContext, input: Input) -> anyhow::Result<Output> {
    if input.steps == 0 {
        return Ok(Output::Input(input));
    }
    let mut results = Vec::with_capacity(input.steps as usize);
    for step in 0..input.steps {
        results.push(ctx.run("step", async { Ok(input.step_result(step)) }).await?);
    }
    Ok(Output::Steps(results))
}
