//! Programs that people write, one for each way in which a replay could go wrong.

use std::time::Duration;

use futures_util::future::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use kagzi::client::RunStatus;
use kagzi::testing::{Crashes, History, TestEngine, crash_after_every_report, crash_everywhere};
use kagzi::workflow::NonRetryableError;
use kagzi::{RetryPolicy, WorkflowContext};

const HOUR: Duration = Duration::from_secs(3600);

/// Executes a workflow with time that is skipped, and answers with its history once it waits for nothing.
pub async fn played<F, Fut>(workflow: F) -> History
where
    F: Fn(WorkflowContext, ()) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = anyhow::Result<u64>> + Send + 'static,
{
    let engine = TestEngine::start().await;
    engine
        .work("law", |worker| {
            worker.register("law", workflow);
        })
        .await;
    engine.skip_time();
    let run = engine.client().workflow("law", "law", ()).await.unwrap();
    // A run that is paused has no result to wait for.
    let ended = tokio::time::timeout(Duration::from_secs(20), run.result::<u64>()).await;
    let history = engine.history(run.run_id()).await;
    assert!(ended.is_ok(), "the run does not end: {history}");
    history
}

fn quick() -> RetryPolicy {
    RetryPolicy { initial_interval: Some(Duration::from_secs(8)), ..RetryPolicy::default() }
}

#[tokio::test]
async fn a_race_lost_by_a_retrying_step_does_not_wake_a_long_sleep() {
    let history = played(|ctx: WorkflowContext, ()| async move {
        let flaky = ctx.step("flaky").retry_policy(quick()).run(|_| async { anyhow::bail!("down") });
        let late = kagzi::select! {
            slept = ctx.sleep(Duration::from_secs(1)) => slept.map(|()| 1)?,
            flaky = flaky => flaky?,
        };
        ctx.sleep(2 * HOUR).await?;
        Ok(late)
    })
    .await;

    history.assert_completed();
    let dispatches = history.run().dispatch_count;
    assert!(dispatches <= 3, "dispatched {dispatches} times: {history}");
}

#[tokio::test]
async fn the_same_with_the_step_first_begins_no_attempt_again() {
    let history = played(|ctx: WorkflowContext, ()| async move {
        let flaky = ctx.step("flaky").retry_policy(quick()).run(|_| async {
            tokio::task::yield_now().await;
            anyhow::bail!("down")
        });
        let late = kagzi::select! {
            flaky = flaky => flaky?,
            slept = ctx.sleep(Duration::from_secs(1)) => slept.map(|()| 1)?,
        };
        ctx.sleep(2 * HOUR).await?;
        Ok(late)
    })
    .await;

    history.assert_completed().assert_attempts("flaky", 1);
    let dispatches = history.run().dispatch_count;
    assert!(dispatches <= 3, "dispatched {dispatches} times: {history}");
}

#[tokio::test]
async fn the_winner_of_a_race_wins_every_replay() {
    let approve = |ctx: WorkflowContext, ()| async move {
        let won = kagzi::select! {
            slept = ctx.sleep(24 * HOUR) => slept.map(|()| 0)?,
            fast = ctx.run("fast", async { Ok(1_u64) }) => fast?,
        };
        // The losing sleep is due in the middle of this one.
        ctx.sleep(48 * HOUR).await?;
        let path = if won == 1 { "go-on" } else { "refund" };
        ctx.run(path, async move { Ok(won) }).await
    };

    played(approve).await.assert_completed().assert_steps(["fast", "go-on"]);
    let register = |worker: &mut kagzi::Worker| {
        worker.register("approve", approve);
    };
    crash_everywhere(register, "approve", ()).await;
}

#[tokio::test]
async fn results_are_saved_in_the_order_in_which_they_came() {
    let save = |ctx: WorkflowContext, ()| async move {
        let fetch = |item: u64| {
            let pauses = 3 - item;
            ctx.run("fetch", async move {
                for _ in 0..pauses {
                    tokio::task::yield_now().await;
                }
                Ok(item)
            })
        };
        let mut items: FuturesUnordered<_> = (0..3).map(fetch).collect();
        let mut order = 0;
        while let Some(item) = items.next().await {
            let item = item?;
            let saved: u64 = ctx.run("save", async move { Ok(item) }).await?;
            assert_eq!(saved, item, "MISPAIRED");
            order = order * 10 + item + 1;
        }
        Ok(order)
    };

    let trial = crash_after_every_report(
        move |worker| {
            worker.register("save", save);
        },
        "save",
        (),
        Crashes::AfterEveryReport,
    );
    let trial = trial.await;

    trial.history.assert_completed();
    assert!(trial.crashes >= 3, "{}", trial.history);
}

#[tokio::test]
async fn branches_without_scopes_replay_in_the_same_order() {
    let twice = |ctx: WorkflowContext, ()| async move {
        let branch = |name: &'static str, pauses: u64| {
            let ctx = ctx.clone();
            async move {
                let code = async move {
                    for _ in 0..pauses {
                        tokio::task::yield_now().await;
                    }
                    Ok(1_u64)
                };
                let one = ctx.run(name, code).await?;
                let two = ctx.run("second", async move { Ok(one + 1) }).await?;
                anyhow::Ok(two)
            }
        };
        let (a, b) = tokio::join!(branch("a", 5), branch("b", 0));
        Ok(a? + b?)
    };

    let trial = crash_after_every_report(
        move |worker| {
            worker.register("twice", twice);
        },
        "twice",
        (),
        Crashes::AfterEveryReport,
    );

    trial.await.history.assert_completed();
}

#[tokio::test]
async fn what_the_function_peeks_at_is_the_same_in_every_replay() {
    let peeks = |ctx: WorkflowContext, ()| async move {
        let (a, mut b) = (ctx.run("a", async { Ok(1_u64) }), Box::pin(ctx.run("b", async { Ok(2_u64) })));
        let a = a.await?;
        let peeked = (&mut b).now_or_never();
        let seen = match peeked {
            Some(b) => ctx.run("was-ready", async move { Ok(a + b.unwrap_or(0)) }).await?,
            None => {
                let seen: u64 = ctx.run("was-not-ready", async move { Ok(a) }).await?;
                seen + b.await?
            }
        };
        Ok(seen)
    };

    let trial = crash_after_every_report(
        move |worker| {
            worker.register("peeks", peeks);
        },
        "peeks",
        (),
        Crashes::AfterEveryReport,
    );

    trial.await.history.assert_completed();
}

#[tokio::test]
async fn a_future_that_is_forgotten_costs_one_wake_up_at_most() {
    let history = played(|ctx: WorkflowContext, ()| async move {
        let mut forgotten = Box::pin(ctx.sleep(HOUR));
        let looked = (&mut forgotten).now_or_never();
        assert!(looked.is_none(), "an hour has not passed");
        std::mem::forget(forgotten);
        ctx.sleep(3 * HOUR).await?;
        Ok(1)
    })
    .await;

    history.assert_completed();
    let dispatches = history.run().dispatch_count;
    assert!(dispatches <= 3, "dispatched {dispatches} times: {history}");
}

#[tokio::test]
async fn a_sleep_of_no_time_in_a_race_has_its_place_in_the_record() {
    let zero = |ctx: WorkflowContext, ()| async move {
        let won = kagzi::select! {
            slept = ctx.sleep(Duration::ZERO) => slept.map(|()| "slept")?,
            fast = ctx.run("fast", async { Ok(()) }) => fast.map(|()| "fast")?,
        };
        ctx.run(won, async { Ok(1_u64) }).await
    };

    let trial = crash_after_every_report(
        move |worker| {
            worker.register("zero", zero);
        },
        "zero",
        (),
        Crashes::AfterEveryReport,
    );

    trial.await.history.assert_completed();
}

#[tokio::test]
async fn a_timeout_holds_over_retries_and_replays() {
    let history = played(|ctx: WorkflowContext, ()| async move {
        let flaky = ctx.step("flaky").retry_policy(quick().maximum_attempts(-1));
        let quote = ctx.timeout(HOUR, flaky.run(|_| async { anyhow::bail!("down") })).await?;
        Ok(quote.unwrap_or(7))
    })
    .await;

    history.assert_completed();
}

#[tokio::test]
async fn a_retried_run_executes_again_only_what_failed_it() {
    let engine = TestEngine::start().await;
    let ship_works = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let works = ship_works.clone();
    engine
        .work("law", |worker| {
            worker.register("order", move |ctx: WorkflowContext, ()| {
                let works = works.clone();
                async move {
                    let declined = || async { Err::<u64, _>(NonRetryableError::new("declined").into()) };
                    let paid = match ctx.step("card-a").run(|_| declined()).await {
                        Ok(paid) => paid,
                        Err(_) => ctx.run("card-b", async { Ok(5_u64) }).await?,
                    };
                    let ship = move |_| {
                        let works = works.load(std::sync::atomic::Ordering::SeqCst);
                        let refused = || NonRetryableError::new("no van").into();
                        async move { if works { Ok(paid) } else { Err(refused()) } }
                    };
                    ctx.step("ship").run(ship).await
                }
            });
        })
        .await;
    let run = engine.client().workflow("order", "law", ()).await.unwrap();
    run.result::<u64>().await.unwrap_err();

    ship_works.store(true, std::sync::atomic::Ordering::SeqCst);
    run.retry().await.unwrap();

    assert_eq!(run.result::<u64>().await.unwrap(), 5);
    let history = engine.history(run.run_id()).await;
    history.assert_steps(["card-b", "ship"]).assert_attempts("card-a", 1).assert_attempts("ship", 2);
    assert_eq!(history.run().status, RunStatus::Completed);
}

#[tokio::test]
async fn panics_of_other_peoples_code_end_the_run_after_few_dispatches() {
    #[derive(Debug)]
    struct Rude;
    impl std::fmt::Display for Rude {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("no words")
        }
    }
    impl std::error::Error for Rude {}
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("dropped")
        }
    }

    let rude = played(|_, ()| async move { Err(Rude.into()) }).await;
    let bomb = played(|ctx: WorkflowContext, ()| async move {
        let _bomb = Bomb;
        ctx.sleep(HOUR).await?;
        Ok(1)
    })
    .await;

    for history in [rude, bomb] {
        history.assert_failed("PANIC");
        assert!(history.run().dispatch_count <= 2, "{history}");
    }
}

#[tokio::test]
async fn a_panic_in_deserialize_fails_the_run() {
    #[derive(Debug)]
    struct Fragile;
    impl<'de> serde::Deserialize<'de> for Fragile {
        fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Fragile, D::Error> {
            panic!("not like this")
        }
    }
    let engine = TestEngine::start().await;
    engine
        .work("law", |worker| {
            worker.register("fragile", |_: WorkflowContext, _: Fragile| async move { Ok(1_u64) });
        })
        .await;

    let run = engine.client().workflow("fragile", "law", ()).await.unwrap();
    run.result::<u64>().await.unwrap_err();

    let history = engine.history(run.run_id()).await;
    history.assert_failed("PANIC");
    assert_eq!(history.run().dispatch_count, 1);
}
