//! The worker's side of the `Work` stream, against a scripted server in memory.

mod drain;
mod leases;
mod reconnect;
mod refused_for_now;
mod scripted_server;

use kagzi::{Worker, WorkflowContext};

/// One step, then the end. It looks away in between, so that they are two reports.
async fn one_step(ctx: WorkflowContext, (): ()) -> anyhow::Result<u64> {
    let value = ctx.run("only", async { Ok(7) }).await?;
    tokio::task::yield_now().await;
    Ok(value)
}

/// A run that never ends by itself.
async fn endless(ctx: WorkflowContext, (): ()) -> anyhow::Result<()> {
    ctx.run("hang", std::future::pending()).await
}

fn register_all(worker: &mut Worker) {
    worker.register("one_step", one_step).register("endless", endless);
}
