//! A policy, errors that say how they want to be retried, and the last word about a step that failed for
//! good.

use std::time::Duration;

use anyhow::bail;
use kagzi::workflow::{NonRetryableError, RetryAfterError, StepError, StepFailure};
use kagzi::{Client, RetryPolicy, StepContext, Worker, WorkflowContext};

/// What a payment gateway may answer, one case per amount.
async fn charge(step: StepContext, cents: i64) -> anyhow::Result<String> {
    println!("charge {cents} cents, attempt {}", step.attempt());
    match (cents, step.attempt()) {
        (..=0, _) => Err(NonRetryableError("invalid amount".into()).into()),
        (13, _) => Err(StepFailure::new("CARD_DECLINED", "no money").class("permanent").into()),
        (_, 1) => bail!("connection reset"),
        // HTTP 429 with `Retry-After: 0`; unreadable headers mean half a minute.
        (_, 2) => Err(RetryAfterError::from_header("rate limited", "0", Duration::from_secs(30)).into()),
        _ => Ok(format!("paid {cents} cents")),
    }
}

async fn payment(ctx: WorkflowContext, cents: i64) -> anyhow::Result<String> {
    let policy = RetryPolicy::CRITICAL.non_retryable_errors(["CARD_DECLINED"]);
    let charge = ctx.step("charge").retry_policy(policy).run(|step| charge(step, cents)).await;
    let Err(error) = charge else { return charge };
    match error.downcast_ref::<StepError>() {
        Some(step) => Ok(format!("{} after {} attempt(s): {:?}", step.code, step.attempts, step.finality)),
        None => Err(error),
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::var("KAGZI_ADDRESS").unwrap_or("127.0.0.1:50051".into());
    let mut worker = Worker::builder(&address, "payments").build().await?;
    worker.register("ProcessPayment", payment);
    let stop = worker.shutdown_token();
    let working = tokio::spawn(worker.run());

    let client = Client::connect(&address).await?;
    for cents in [450, -1, 13] {
        // Merged in any order, and under the policy of the step.
        let run = client
            .workflow("ProcessPayment", "payments", cents)
            .retries(10)
            .retry_policy(RetryPolicy { backoff_coefficient: Some(1.5), ..Default::default() })
            .await?;
        println!("{}", run.result::<String>().await?);
    }

    stop.cancel();
    Ok(working.await??)
}
