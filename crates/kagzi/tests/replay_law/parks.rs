//! Futures that the function keeps without looking at them: how often the run is given to a worker for it.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures_util::future::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use kagzi::{RetryPolicy, WorkflowContext};

use crate::programs::played;

const HOUR: Duration = Duration::from_secs(3600);

type Slept = Pin<Box<dyn Future<Output = anyhow::Result<()>> + Send>>;

/// Looked at once, by somebody who will not be there again.
fn looked_at(mut sleep: Slept) -> Slept {
    assert!((&mut sleep).now_or_never().is_none(), "it is not over at once");
    sleep
}

#[tokio::test]
async fn a_future_that_is_looked_at_once_and_kept_costs_one_wake_up_at_most() {
    let history = played(|ctx: WorkflowContext, ()| async move {
        let kept = looked_at(Box::pin(ctx.sleep(HOUR)));
        ctx.sleep(3 * HOUR).await?;
        ctx.sleep(3 * HOUR).await?;
        kept.await?;
        Ok(1)
    })
    .await;

    history.assert_completed();
    let dispatches = history.run().dispatch_count;
    assert!(dispatches <= 4, "dispatched {dispatches} times: {history}");
}

#[tokio::test]
async fn futures_that_move_after_they_were_looked_at_are_woken_where_they_are() {
    let history = played(|ctx: WorkflowContext, ()| async move {
        let sleeps = (1..=3).map(|hours| looked_at(Box::pin(ctx.sleep(hours * HOUR))));
        let mut moved: FuturesUnordered<Slept> = sleeps.collect();
        let mut ended = 0;
        while let Some(slept) = moved.next().await {
            slept?;
            ended += 1;
        }
        Ok(ended)
    })
    .await;

    history.assert_completed();
    let dispatches = history.run().dispatch_count;
    assert!(dispatches <= 4, "dispatched {dispatches} times: {history}");
}

#[tokio::test]
async fn a_retried_step_that_is_kept_and_never_looked_at_again_does_not_wake_the_run_for_ever() {
    let history = played(|ctx: WorkflowContext, ()| async move {
        let policy = RetryPolicy { initial_interval: Some(HOUR), ..RetryPolicy::default() };
        let flaky = ctx.step("flaky").retry_policy(policy).run(|_| async { anyhow::bail!("down") });
        let mut kept: Pin<Box<dyn Future<Output = anyhow::Result<u64>> + Send>> = Box::pin(flaky);
        assert!((&mut kept).now_or_never().is_none());
        // The failure has its turn while this step waits for its own.
        let value = ctx.run("beside", async { Ok(1_u64) }).await?;
        ctx.sleep(24 * HOUR).await?;
        ctx.sleep(24 * HOUR).await?;
        drop(kept);
        Ok(value)
    })
    .await;

    history.assert_completed();
    let dispatches = history.run().dispatch_count;
    assert!(dispatches <= 4, "dispatched {dispatches} times: {history}");
}
