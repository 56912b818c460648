//! Steps with options, a step that fails and is retried, and a sleep that needs no worker.

use std::time::Duration;

use anyhow::ensure;
use kagzi::{Client, RetryPolicy, Worker, WorkflowContext};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Order {
    item: String,
    cents: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Receipt {
    charge_attempts: u32,
    shipped: String,
}

async fn order(ctx: WorkflowContext, order: Order) -> anyhow::Result<Receipt> {
    let soon = RetryPolicy { initial_interval: Some(Duration::from_millis(50)), ..Default::default() };
    let charge_attempts: u32 = ctx
        .step("charge")
        .timeout(Duration::from_secs(30))
        .retries(3)
        .retry_policy(soon)
        .run(|step| async move {
            // The key stays the same over attempts: a receiver that deduplicates charges once.
            ensure!(step.idempotency_key().ends_with(":step:charge"), "the key names the step");
            println!("charge {} cents, attempt {}", order.cents, step.attempt());
            ensure!(step.attempt() > 1, "the card reader is busy");
            Ok(step.attempt())
        })
        .await?;
    ctx.sleep(Duration::from_secs(1)).await?;
    let shipped: String = ctx.run("ship", async move { Ok(order.item) }).await?;
    Ok(Receipt { charge_attempts, shipped })
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::var("KAGZI_ADDRESS").unwrap_or("127.0.0.1:50051".into());
    let mut worker = Worker::builder(&address, "orders").version("1.0.0").build().await?;
    worker.register("order", order);
    let stop = worker.shutdown_token();
    let working = tokio::spawn(worker.run());

    let client = Client::connect(&address).await?;
    let run = client.workflow("order", "orders", Order { item: "tea".into(), cents: 450 }).await?;
    println!("{:?}", run.result::<Receipt>().await?);

    stop.cancel();
    Ok(working.await??)
}
