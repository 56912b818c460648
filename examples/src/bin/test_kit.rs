//! How workflows are tested: a month passes at once, and the worker is killed wherever it could hurt.

use std::time::Duration;

use kagzi::testing::{TestEngine, crash_everywhere};
use kagzi::{StepContext, Worker, WorkflowContext};

const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);

async fn subscription(ctx: WorkflowContext, user: String) -> anyhow::Result<String> {
    let charge = |step: StepContext| async move {
        anyhow::ensure!(step.attempt() > 1, "the card reader is busy");
        Ok(450)
    };
    let mut cents = 0;
    for _ in 0..2 {
        ctx.sleep(MONTH).await?;
        cents += ctx.step("charge").run(charge).await?;
    }
    ctx.run("mail", async move { Ok(format!("{user} paid {cents} cents")) }).await
}

fn register(worker: &mut Worker) {
    worker.register("subscription", subscription);
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let engine = TestEngine::start().await;
    engine.work("billing", register).await;
    let run = engine.client().workflow("subscription", "billing", "Ada").await?;

    // Step by step: nothing happens until the clock is moved.
    engine.settle().await;
    engine.history(run.run_id()).await.assert_steps([]);
    engine.advance(MONTH);
    engine.settle().await;
    engine.history(run.run_id()).await.assert_steps([]).assert_attempts("charge", 1);

    // Or all at once.
    engine.skip_time();
    println!("{}", run.result::<String>().await?);
    let history = engine.history(run.run_id()).await;
    history.assert_completed().assert_steps(["charge", "charge#2", "mail"]).assert_attempts("charge", 2);

    // A worker dies before and after every commit; each time the outcome must be the same.
    print!("{}", crash_everywhere(register, "subscription", "Ada").await);
    Ok(())
}
