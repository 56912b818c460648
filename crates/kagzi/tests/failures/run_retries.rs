use anyhow::ensure;
use kagzi::testing::TestEngine;
use kagzi::workflow::NonRetryableError;
use kagzi::{RetryPolicy, WorkflowContext};

use crate::{Count, seconds};

#[tokio::test]
async fn a_run_that_asked_for_it_is_executed_again_and_keeps_its_completed_steps() {
    let engine = TestEngine::start().await;
    let (functions, charges) = (Count::default(), Count::default());
    let counts = (functions.clone(), charges.clone());
    let function = move |ctx: WorkflowContext, (): ()| {
        let (functions, charges) = counts.clone();
        async move {
            let charged: u32 = ctx.run("charge", async { Ok(charges.up()) }).await?;
            ensure!(functions.up() == 3, "the function failed by itself");
            Ok((charged, ctx.attempt()))
        }
    };
    engine
        .work("q", |worker| {
            worker.register("w", function);
        })
        .await;
    engine.skip_time();
    let began = engine.now();

    let run = engine.client().workflow("w", "q", ()).run_retry_policy(RetryPolicy::default()).await.unwrap();

    assert!(run.describe().await.unwrap().run_retry_policy.is_some(), "all defaults, but asked for");
    assert_eq!(run.result::<(u32, u32)>().await.unwrap(), (1, 3));
    assert_eq!(engine.now().duration_since(began).unwrap(), seconds(1 + 2));
    assert_eq!((functions.get(), charges.get()), (3, 1));
}

#[tokio::test]
async fn a_step_that_failed_for_good_begins_anew_with_the_run() {
    let engine = TestEngine::start().await;
    let count = Count::default();
    let executions = count.clone();
    let function = move |ctx: WorkflowContext, (): ()| {
        let executions = executions.clone();
        async move {
            let charge = ctx.step("charge").retry_policy(RetryPolicy::IMMEDIATE).run(|_| {
                let n = executions.up();
                async move {
                    ensure!(n == 5, "down");
                    Ok(n)
                }
            });
            charge.await
        }
    };
    engine
        .work("q", |worker| {
            worker.register("w", function);
        })
        .await;
    engine.skip_time();

    let run = engine.client().workflow("w", "q", ()).run_retry_policy(RetryPolicy::default()).await.unwrap();

    assert_eq!(run.result::<u32>().await.unwrap(), 5);
}

#[tokio::test]
async fn without_asking_the_first_error_of_the_function_is_the_end() {
    let engine = TestEngine::start().await;
    let count = Count::default();
    let executions = count.clone();
    let function = move |_: WorkflowContext, (): ()| {
        executions.up();
        async move { Err::<u32, _>(anyhow::anyhow!("once is enough")) }
    };
    engine
        .work("q", |worker| {
            worker.register("w", function);
        })
        .await;

    let run = engine.client().workflow("w", "q", ()).retries(5).await.unwrap();

    run.result::<u32>().await.unwrap_err();
    assert_eq!(count.get(), 1);
}

#[tokio::test]
async fn a_non_retryable_error_ends_a_run_that_asked_for_retries() {
    let engine = TestEngine::start().await;
    let function = |ctx: WorkflowContext, (): ()| async move {
        ctx.run::<u32, _>("charge", async { Err(NonRetryableError::new("card stolen").into()) }).await
    };
    engine
        .work("q", |worker| {
            worker.register("w", function);
        })
        .await;

    let run = engine.client().workflow("w", "q", ()).run_retry_policy(RetryPolicy::CRITICAL).await.unwrap();

    run.result::<u32>().await.unwrap_err();
    engine.history(run.run_id()).await.assert_failed("NON_RETRYABLE").assert_attempts("charge", 1);
}
