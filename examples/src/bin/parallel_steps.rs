//! Steps side by side: two by name with `join!`, and one scope per item of a list.

use std::time::Duration;

use futures_util::future::try_join_all;
use kagzi::{Client, Worker, WorkflowContext};
use tokio::time::sleep;

/// A scope gives each branch its own paths, `pear/weigh` and `plum/weigh`, so that no branch can disturb
/// the order of another.
async fn weigh_and_pack(ctx: WorkflowContext, grams: u64) -> anyhow::Result<u64> {
    let weight: u64 = ctx.run("weigh", async move { Ok(grams) }).await?;
    ctx.run("pack", async move { Ok(weight + 20) }).await
}

async fn basket(ctx: WorkflowContext, items: Vec<(String, u64)>) -> anyhow::Result<String> {
    let slow = async {
        sleep(Duration::from_millis(50)).await;
        Ok("slow".to_owned())
    };
    let (stock, price) =
        tokio::join!(ctx.run("stock", slow), ctx.run("price", async { Ok("fast".to_owned()) }));
    let (stock, price): (String, String) = (stock?, price?);

    let branches = items.into_iter().map(|(name, grams)| weigh_and_pack(ctx.scope(&name), grams));
    let packed = try_join_all(branches).await?;
    Ok(format!("{stock} and {price}, then {packed:?} grams"))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::var("KAGZI_ADDRESS").unwrap_or("127.0.0.1:50051".into());
    let mut worker = Worker::builder(&address, "baskets").max_concurrent(10).build().await?;
    worker.register("basket", basket);
    let stop = worker.shutdown_token();
    let working = tokio::spawn(worker.run());

    let client = Client::connect(&address).await?;
    let items = vec![("pear", 150), ("plum", 60), ("fig", 40)];
    let run = client.workflow("basket", "baskets", items).await?;
    println!("{}", run.result::<String>().await?);

    stop.cancel();
    Ok(working.await??)
}
