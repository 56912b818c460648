//! The test kit tests workflows, and here itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use kagzi::client::RunStatus;
use kagzi::testing::{TestEngine, crash_everywhere};
use kagzi::workflow::NonRetryableError;
use kagzi::{RetryPolicy, StepContext, WorkflowContext};

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn remind(ctx: WorkflowContext, times: u32) -> anyhow::Result<u32> {
    for n in 0..times {
        ctx.sleep(30 * DAY).await?;
        ctx.run("mail", async move { Ok(n) }).await?;
    }
    Ok(times)
}

#[tokio::test]
async fn a_year_of_sleep_passes_at_once() {
    let engine = TestEngine::start().await;
    engine
        .work("mails", |worker| {
            worker.register("remind", remind);
        })
        .await;
    engine.skip_time();
    let (began, began_at) = (Instant::now(), engine.now());

    let run = engine.client().workflow("remind", "mails", 12).await.unwrap();

    assert_eq!(run.result::<u32>().await.unwrap(), 12);
    assert_eq!(engine.now().duration_since(began_at).unwrap(), 360 * DAY);
    assert!(began.elapsed() < Duration::from_secs(5), "took {:?}", began.elapsed());
}

#[tokio::test]
async fn time_stands_still_until_it_is_moved() {
    let engine = TestEngine::start().await;
    engine
        .work("mails", |worker| {
            worker.register("remind", remind);
        })
        .await;
    let run = engine.client().workflow("remind", "mails", 1).await.unwrap();

    engine.settle().await;
    engine.advance(30 * DAY - Duration::from_millis(1));
    engine.settle().await;
    engine.history(run.run_id()).await.assert_status(RunStatus::Sleeping).assert_steps([]);
    engine.advance(Duration::from_millis(1));

    assert_eq!(run.result::<u32>().await.unwrap(), 1);
    let history = engine.history(run.run_id()).await;
    history.assert_completed().assert_steps(["mail"]).assert_attempts("mail", 1);
    assert_eq!(history.result_of::<u32>("mail"), 0);
    engine.close().await;
}

#[tokio::test]
async fn a_run_without_a_worker_does_not_keep_others_waiting() {
    let engine = TestEngine::start().await;
    engine
        .work("mails", |worker| {
            worker.register("remind", remind);
        })
        .await;
    engine.client().workflow("nobody", "knows", ()).await.unwrap();
    engine.skip_time();

    let run = engine.client().workflow("remind", "mails", 2).await.unwrap();

    assert_eq!(run.result::<u32>().await.unwrap(), 2);
}

/// Charges, waits for the goods, ships two parcels at once after a failure each, and says goodbye.
async fn order(ctx: WorkflowContext, cents: u64) -> anyhow::Result<String> {
    let key: String = ctx.step("charge").run(|step| async move { Ok(step.idempotency_key()) }).await?;
    ctx.sleep(DAY).await?;
    let ship = |step: StepContext| async move {
        anyhow::ensure!(step.attempt() > 1, "no van");
        Ok(1_u32)
    };
    let (one, two) = (ctx.scope("one"), ctx.scope("two"));
    let policy = RetryPolicy::QUICK.maximum_attempts(5).retry_timeout(DAY);
    let (first, second) = tokio::join!(
        one.step("ship").retry_policy(policy.clone()).run(ship),
        two.step("ship").retry_policy(policy).run(ship)
    );
    let parcels = first? + second?;
    ctx.run("mail", async move { Ok(()) }).await?;
    Ok(format!("{cents} cents with {key}, {parcels} parcels"))
}

#[tokio::test]
async fn an_order_ends_the_same_wherever_its_worker_dies() {
    let report = crash_everywhere(
        |worker| {
            worker.register("order", order);
        },
        "order",
        450,
    )
    .await;

    assert_eq!(report.executions_of("charge"), 1);
    assert_eq!(report.executions_of("one/ship"), 2);
    assert_eq!(report.most_executions_of("charge"), 2);
    assert!(report.most_executions_of("mail") <= 2);
    assert!(report.crash_points() >= 16, "{report}");
}

#[tokio::test]
async fn a_run_that_fails_fails_the_same_wherever_its_worker_dies() {
    let broken = |ctx: WorkflowContext, (): ()| async move {
        let stolen = || async { Err::<u32, _>(NonRetryableError::new("card stolen").into()) };
        if let Err(error) = ctx.step("charge").run(|_| stolen()).await {
            ctx.run("apologise", async { Ok(()) }).await?;
            return Err(error);
        }
        Ok(())
    };

    let report = crash_everywhere(
        |worker| {
            worker.register("order", broken);
        },
        "order",
        (),
    )
    .await;

    assert_eq!(report.executions_of("apologise"), 1);
}

#[tokio::test]
#[should_panic(expected = "without a crash as")]
async fn a_workflow_that_is_not_deterministic_is_found_out() {
    let calls = Arc::new(AtomicU32::new(0));
    let random = move |ctx: WorkflowContext, (): ()| {
        let calls = calls.clone();
        async move { ctx.run("roll", async move { Ok(calls.fetch_add(1, Ordering::SeqCst)) }).await }
    };

    crash_everywhere(
        |worker| {
            worker.register("game", random.clone());
        },
        "game",
        (),
    )
    .await;
}
