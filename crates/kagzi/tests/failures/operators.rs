use anyhow::ensure;
use kagzi::client::RunStatus;
use kagzi::testing::TestEngine;
use kagzi::{RetryPolicy, WorkflowContext};

use crate::{Count, seconds, start};

/// A workflow whose step `ship` fails for good the first time.
async fn engine() -> (TestEngine, Count, Count) {
    let engine = TestEngine::start().await;
    let (charges, shipments) = (Count::default(), Count::default());
    let counts = (charges.clone(), shipments.clone());
    let function = move |ctx: WorkflowContext, (): ()| {
        let (charges, shipments) = counts.clone();
        async move {
            ctx.run("charge", async { Ok(charges.up()) }).await?;
            let ship = ctx.step("ship").retry_policy(RetryPolicy::NONE).run(|_| {
                let n = shipments.up();
                async move {
                    ensure!(n > 1, "no van");
                    Ok(n)
                }
            });
            ship.await
        }
    };
    let slow = |ctx: WorkflowContext, (): ()| async move {
        ctx.sleep(seconds(3600)).await?;
        Ok(())
    };
    engine
        .work("q", |worker| {
            worker.register("w", function).register("slow", slow);
        })
        .await;
    (engine, charges, shipments)
}

#[tokio::test]
async fn a_failed_run_goes_on_in_place_from_its_failed_step() {
    let (engine, charges, shipments) = engine().await;
    let run = start(&engine, "w").await;
    run.result::<u32>().await.unwrap_err();

    run.retry().await.unwrap();

    assert_eq!(run.result::<u32>().await.unwrap(), 2);
    assert_eq!((charges.get(), shipments.get()), (1, 2));
    engine.history(run.run_id()).await.assert_completed().assert_steps(["charge", "ship"]);
}

#[tokio::test]
async fn a_restart_is_a_new_run_from_the_top() {
    let (engine, charges, shipments) = engine().await;
    let run = start(&engine, "w").await;
    run.result::<u32>().await.unwrap_err();

    let again = run.restart().await.unwrap();

    assert_ne!(again.run_id(), run.run_id());
    assert_eq!(again.result::<u32>().await.unwrap(), 2);
    assert_eq!((charges.get(), shipments.get()), (2, 2));
    engine.history(run.run_id()).await.assert_status(RunStatus::Failed);
}

#[tokio::test]
async fn a_waiting_retry_begins_at_once_when_asked() {
    let engine = TestEngine::start().await;
    let function = |ctx: WorkflowContext, (): ()| async move {
        let ship = ctx.step("ship").run(|step| async move {
            ensure!(step.attempt() > 2, "no van");
            Ok(step.attempt())
        });
        ship.await
    };
    engine
        .work("q", |worker| {
            worker.register("w", function);
        })
        .await;
    let run = start(&engine, "w").await;
    let began = engine.now();

    engine.settle().await;
    run.retry().await.unwrap();
    engine.settle().await;
    run.resume().await.unwrap();

    assert_eq!(run.result::<u32>().await.unwrap(), 3);
    assert_eq!(engine.now(), began);
}

#[tokio::test]
async fn terminating_is_at_once_idempotent_and_keeps_the_reason() {
    let (engine, ..) = engine().await;
    let run = start(&engine, "slow").await;
    engine.settle().await;

    run.terminate("wrong customer").await.unwrap();
    run.terminate("wrong customer").await.unwrap();

    let ended = run.finished().await.unwrap();
    assert_eq!(ended.status, RunStatus::Failed);
    assert!(ended.error.unwrap().message.contains("wrong customer"));
}
