//! One run for every input, side by side, on whichever worker is free; their parent holds no worker while it
//! waits, is woken by the last of them, and hears of every one: of the failed one too.

use kagzi::workflow::{StepError, StepFailure};
use kagzi::{Client, Worker, WorkflowContext};

/// A run of its own: it has its own history, its own retries, and could be on another queue.
async fn price(ctx: WorkflowContext, item: String) -> anyhow::Result<u64> {
    let cents = ctx.run("look up", async move {
        match item.as_str() {
            "tea" => Ok(450),
            "milk" => Ok(120),
            "cups" => Ok(990),
            "honey" => Ok(600),
            other => {
                let failure = StepFailure::new("NOT_SOLD", format!("nobody sells {other}"));
                Err(failure.non_retryable().into())
            }
        }
    });
    cents.await
}

async fn offer(ctx: WorkflowContext, items: Vec<String>) -> anyhow::Result<Vec<String>> {
    let prices: Vec<anyhow::Result<u64>> = ctx.children("price", &items).await;
    let lines = items.iter().zip(prices).map(|(item, price)| match price {
        Ok(cents) => format!("{item}: {cents} cents"),
        Err(error) => {
            let code = error.downcast_ref::<StepError>().map_or("UNKNOWN", |failed| &failed.code);
            format!("{item}: {code}")
        }
    });
    Ok(lines.collect())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::var("KAGZI_ADDRESS").unwrap_or("127.0.0.1:50051".into());
    let mut worker = Worker::builder(&address, "offers").build().await?;
    worker.register("offer", offer).register("price", price);
    let stop = worker.shutdown_token();
    let working = tokio::spawn(worker.run());

    let client = Client::connect(&address).await?;
    let run = client.workflow("offer", "offers", ["tea", "milk", "unicorns", "cups", "honey"]).await?;
    for line in run.result::<Vec<String>>().await? {
        println!("{line}");
    }

    stop.cancel();
    Ok(working.await??)
}
