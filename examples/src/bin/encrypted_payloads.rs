//! Payloads that the server cannot read: compressed, then encrypted with a key that stays in your processes.

use kagzi::codec::{CompressionCodec, EncryptionCodec};
use kagzi::{Client, Error, Worker, WorkflowContext};

async fn charge(ctx: WorkflowContext, card: String) -> anyhow::Result<String> {
    let last = card[card.len() - 4..].to_owned();
    let receipt = ctx.run("charge", async move { Ok(format!("charged the card ending in {last}")) }).await?;
    anyhow::ensure!(!card.starts_with("5555"), "card {card} is stolen");
    Ok(receipt)
}

/// In real life from a secret store. To rotate: a new first key, and `.with_old_key("k1", ..)`.
fn key() -> anyhow::Result<EncryptionCodec> {
    Ok(EncryptionCodec::new("k1", [42; 32])?)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::var("KAGZI_ADDRESS").unwrap_or("127.0.0.1:50051".into());
    let worker = Worker::builder(&address, "cards").codec(CompressionCodec).codec(key()?);
    let mut worker = worker.build().await?;
    worker.register("charge", charge);
    let stop = worker.shutdown_token();
    let working = tokio::spawn(worker.run());

    let client = Client::connect(&address).await?.codec(CompressionCodec).codec(key()?);
    let run = client.workflow("charge", "cards", "4242 4242 4242 4242").await?;
    println!("with the key: {}", run.result::<String>().await?);

    let without = Client::connect(&address).await?;
    let stored = without.get(run.run_id()).await?.input.unwrap_or_default();
    println!("without: {}", stored.content_type);
    println!("the card is in there: {}", stored.data.windows(4).any(|bytes| bytes == b"4242"));

    let stolen = client.workflow("charge", "cards", "5555 5555 5555 4444").await?;
    if let Err(Error::RunFailed(failed)) = stolen.result::<String>().await {
        println!("with the key: {} {}", failed.code, failed.message);
    }
    let stored = without.get(stolen.run_id()).await?.error.unwrap_or_default();
    println!("without: {} {}...", stored.code, &stored.message[..44]);

    stop.cancel();
    Ok(working.await??)
}
