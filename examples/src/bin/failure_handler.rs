//! Both ways to hear of failed runs: a handler of the workflow's own, and one for the whole namespace.

use kagzi::workflow::WorkflowFailedEvent;
use kagzi::{Client, Worker, WorkflowContext};

async fn payment(_: WorkflowContext, cents: u64) -> anyhow::Result<()> {
    anyhow::bail!("could not charge {cents} cents")
}

/// Pattern 1, for one workflow: `.on_failure("HandlePaymentFailure")`.
async fn payment_failed(ctx: WorkflowContext, event: WorkflowFailedEvent) -> anyhow::Result<String> {
    let refund: String =
        ctx.run("refund", async { Ok(format!("refunded {}", event.input::<u64>()?)) }).await?;
    ctx.run("alert", async move {
        Ok(format!("{} failed after {} attempt(s), {refund}", event.business_id, event.attempts))
    })
    .await
}

/// Pattern 2, for everything in the namespace: registered under a reserved name.
async fn anything_failed(ctx: WorkflowContext, event: WorkflowFailedEvent) -> anyhow::Result<String> {
    ctx.run("page", async move { Ok(format!("{} failed: {}", event.workflow_type, event.error)) }).await
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::var("KAGZI_ADDRESS").unwrap_or("127.0.0.1:50051".into());
    let namespace = "failure-handler-example";
    let mut worker = Worker::builder(&address, "payments").namespace(namespace).build().await?;
    worker
        .register("ProcessPayment", payment)
        .register("HandlePaymentFailure", payment_failed)
        .register_failure_handler(anything_failed);
    let stop = worker.shutdown_token();
    let working = tokio::spawn(worker.run());

    let client = Client::connect(&address).await?.namespace(namespace);
    let start = client.workflow("ProcessPayment", "payments", 450).id("order-42");
    let run = start.on_failure("HandlePaymentFailure").await?;
    println!("{}", run.finished().await?.error.unwrap_or_default().message);

    // Started in the same commit as the failure, so they are there by now.
    for prefix in ["failure", "system-failure"] {
        let handler = client.get_by_id(format!("{prefix}-{}", run.run_id())).await?;
        println!("{}", client.handle(handler.run_id).result::<String>().await?);
    }

    stop.cancel();
    Ok(working.await??)
}
