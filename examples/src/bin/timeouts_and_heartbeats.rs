//! A long step says how far it is, hangs, is timed out, and goes on where it was.

use std::time::Duration;

use kagzi::{Client, RetryPolicy, StepContext, Worker, WorkflowContext};

async fn import(step: StepContext) -> anyhow::Result<u32> {
    let first = step.last_progress::<u32>().map_or(1, |row| row + 1);
    for row in first..=5 {
        if row == 4 && step.attempt() == 1 {
            println!("row 4: the connection hangs");
            std::future::pending::<()>().await;
        }
        println!("row {row}: imported in attempt {}", step.attempt());
        step.progress(&row);
    }
    Ok(5)
}

async fn nightly(ctx: WorkflowContext, _: ()) -> anyhow::Result<u32> {
    ctx.step("import")
        .timeout(Duration::from_millis(500))
        .retry_policy(RetryPolicy::QUICK)
        .on_retry(|attempt, error, _delay| println!("attempt {attempt}: {error}"))
        .run(import)
        .await
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::var("KAGZI_ADDRESS").unwrap_or("127.0.0.1:50051".into());
    let mut worker = Worker::builder(&address, "imports").build().await?;
    worker.register("nightly", nightly);
    let stop = worker.shutdown_token();
    let working = tokio::spawn(worker.run());

    let client = Client::connect(&address).await?;
    let run = client
        .workflow("nightly", "imports", ())
        .execution_timeout(Duration::from_secs(3600)) // the whole run
        .step_timeout(Duration::from_secs(300)) // attempts of steps that set no limit
        .heartbeat_timeout(Duration::from_secs(60)) // silence of a worker
        .await?;
    println!("{} rows", run.result::<u32>().await?);

    stop.cancel();
    Ok(working.await??)
}
