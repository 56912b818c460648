//! The worker's side of the `Work` stream, against a scripted server in memory.

mod drain;
mod leases;
mod reconnect;
mod scripted_server;

use kagzi::{Worker, WorkflowContext};

/// One step, then the end.
async fn one_step(ctx: WorkflowContext, (): ()) -> anyhow::Result<u64> {
    ctx.run("only", async { Ok(7) }).await
}

/// A run that never ends by itself.
async fn endless(ctx: WorkflowContext, (): ()) -> anyhow::Result<()> {
    ctx.run("hang", std::future::pending()).await
}

fn register_all(worker: &mut Worker) {
    worker.register("one_step", one_step).register("endless", endless);
}
