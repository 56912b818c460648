use kagzi::{Client, Worker, WorkflowContext};
use std::time::Duration;

async fn order(ctx: WorkflowContext, item: String) -> anyhow::Result<String> {
    let charge = async {
        println!("charging");
        Ok("paid".to_owned())
    };
    let paid: String = ctx.run("charge", charge).await?;
    ctx.sleep(Duration::from_secs(5)).await?;
    let ship = ctx.step("ship").timeout(Duration::from_secs(30)).retries(5);
    let sent: String = ship.run(|_| std::future::ready(Ok(format!("{item} sent")))).await?;
    Ok(format!("{paid}, {sent}"))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::var("KAGZI_ADDRESS").unwrap_or("127.0.0.1:50051".into());
    let mut worker = Worker::builder(&address, "orders").build().await?;
    worker.register("order", order);
    let stop = worker.shutdown_token();
    let mut working = tokio::spawn(worker.run());

    let client = Client::connect(&address).await?;
    let run = client.workflow("order", "orders", "tea").id("order-42").await?;
    tokio::select! {
        result = run.result::<String>() => println!("{}", result?),
        ended = &mut working => return Ok(ended??), // Ctrl-C: the worker gave back what it had and ended
    }
    stop.cancel();
    Ok(working.await??)
}
