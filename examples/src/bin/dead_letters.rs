//! A payment as the plan describes it: a policy in parts, typed errors, a handler that keeps dead letters,
//! and one that hears of everything.

use std::time::Duration;

use kagzi::workflow::{NonRetryableError, RetryAfterError, WorkflowFailedEvent};
use kagzi::{Client, RetryPolicy, Worker, WorkflowContext};

async fn process_payment(ctx: WorkflowContext, cents: i64) -> anyhow::Result<String> {
    let charge_card = ctx.step("charge_card").run(move |step| async move {
        println!("charge {cents} cents, attempt {}", step.attempt());
        match (cents, step.attempt()) {
            (..=0, _) => Err(NonRetryableError("invalid amount".into()).into()),
            (_, 1) => Err(RetryAfterError::new("rate limited", Duration::from_millis(20)).into()),
            _ => Ok(format!("charged {cents} cents")),
        }
    });
    charge_card.await
}

async fn handle_payment_failure(ctx: WorkflowContext, event: WorkflowFailedEvent) -> anyhow::Result<String> {
    let alert = format!("payment failed after {} attempt(s): {}", event.attempts, event.error);
    let alert: String = ctx.run("send_alert", async { Ok(alert) }).await?;
    // The input comes as the bytes it was.
    let letter = format!("{} {}", event.workflow_type, String::from_utf8_lossy(&event.original_input));
    ctx.run("save_to_dlq", async { Ok(format!("{alert}; kept: {letter}")) }).await
}

async fn global_failure_handler(ctx: WorkflowContext, event: WorkflowFailedEvent) -> anyhow::Result<String> {
    ctx.run("page_oncall", async { Ok(format!("paged: {} {}", event.workflow_type, event.status)) }).await
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::var("KAGZI_ADDRESS").unwrap_or("127.0.0.1:50051".into());
    let mut worker = Worker::builder(&address, "default").namespace("dead-letters").build().await?;
    worker.register("ProcessPayment", process_payment);
    worker.register("HandlePaymentFailure", handle_payment_failure);
    worker.register("__kagzi_failure_handler", global_failure_handler);
    let stop = worker.shutdown_token();
    let working = tokio::spawn(worker.run());

    let client = Client::connect(&address).await?.namespace("dead-letters");
    let five = RetryPolicy { initial_interval: Some(Duration::from_secs(5)), ..Default::default() };
    let start = |cents: i64| client.workflow("ProcessPayment", "default", cents).retries(10);
    let paid = start(450).retry_policy(five.backoff_coefficient(1.5)).await?;
    println!("{}", paid.result::<String>().await?);
    // Merged in any order; what nobody set is not there.
    let policy = paid.describe().await?.retry_policy;
    println!(
        "{:?} executions, {:?} ms",
        policy.maximum_attempts,
        policy.initial_interval.map(|delay| delay.as_millis())
    );

    let refused = start(-1).on_failure("HandlePaymentFailure").await?;
    println!("{}", refused.finished().await?.error.unwrap_or_default().message);
    for handler in ["failure", "system-failure"] {
        let run = client.get_by_id(format!("{handler}-{}", refused.run_id())).await?;
        println!("{}", client.handle(run.run_id).result::<String>().await?);
    }

    stop.cancel();
    Ok(working.await??)
}
