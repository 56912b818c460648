//! A run waits for a person's word, for a day at most, without holding a worker; a cart takes items until it
//! is closed.

use std::time::Duration;

use kagzi::{Client, Worker, WorkflowContext};

async fn refund(ctx: WorkflowContext, cents: u64) -> anyhow::Result<String> {
    let day = Duration::from_secs(86_400);
    let approved: Option<String> = ctx.signal("approved").timeout(day).await?;
    let Some(by) = approved else { return Ok("nobody answered within a day".into()) };
    ctx.run("refund", async move { Ok(format!("{cents} cents refunded, approved by {by}")) }).await
}

async fn cart(ctx: WorkflowContext, _: ()) -> anyhow::Result<Vec<String>> {
    let items = ctx.signals::<String>("item");
    ctx.signal::<()>("checkout").await?;
    let mut cart = Vec::new();
    // Takes what is there, then closes the channel: whoever sends later is refused, and nothing is lost.
    while let Some(item) = items.last_call().await? {
        cart.push(item);
    }
    Ok(cart)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::var("KAGZI_ADDRESS").unwrap_or("127.0.0.1:50051".into());
    let mut worker = Worker::builder(&address, "people").build().await?;
    worker.register("refund", refund).register("cart", cart);
    let stop = worker.shutdown_token();
    let working = tokio::spawn(worker.run());

    let client = Client::connect(&address).await?;
    let run = client.workflow("refund", "people", 1_250).await?;
    // The same word from two doors counts once: both name it alike.
    run.signal("approved", "ada").id("approval-7").await?;
    println!("again: {}", run.signal("approved", "ada").id("approval-7").await?.already);
    println!("{}", run.result::<String>().await?);

    let cart = client.workflow("cart", "people", ()).await?;
    for item in ["tea", "milk", "cups"] {
        cart.signal("item", item).await?;
    }
    cart.signal("checkout", &()).await?;
    println!("{:?}", cart.result::<Vec<String>>().await?);

    stop.cancel();
    Ok(working.await??)
}
