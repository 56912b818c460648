//! The smallest workflow. Worker and client share this program; usually they are two.

use kagzi::{Client, Worker, WorkflowContext};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Guest {
    name: String,
}

async fn hello(ctx: WorkflowContext, guest: Guest) -> anyhow::Result<String> {
    ctx.run("greet", async move { Ok(format!("hello, {}", guest.name)) }).await
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::var("KAGZI_ADDRESS").unwrap_or("127.0.0.1:50051".into());
    let mut worker = Worker::builder(&address, "default").build().await?;
    worker.register("hello", hello);
    let stop = worker.shutdown_token();
    let working = tokio::spawn(worker.run());

    let client = Client::connect(&address).await?;
    let run = client.workflow("hello", "default", Guest { name: "Ada".into() }).await?;
    println!("{}", run.result::<String>().await?);

    stop.cancel();
    Ok(working.await??)
}
