//! Scopes that are recorded as one, as users write them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kagzi::WorkflowContext;
use kagzi::client::RunStatus;
use kagzi::testing::{
    Crashes, TestEngine, crash_after_every_report, crash_everywhere, crash_while_signalled,
};
use kagzi::workflow::{NonRetryableError, Raced};

const HOUR: Duration = Duration::from_secs(3600);

/// How often the code of scopes was begun.
type Begun = Arc<AtomicU32>;

/// A workflow of one queue, and a run of it.
async fn started<I: serde::Serialize>(
    engine: &TestEngine,
    register: impl FnOnce(&mut kagzi::Worker),
    input: I,
) -> kagzi::client::RunHandle {
    engine.work("q", register).await;
    engine.skip_time();
    engine.client().workflow("w", "q", input).await.unwrap()
}

#[tokio::test]
async fn a_scope_that_has_ended_is_not_executed_again() {
    let engine = TestEngine::start().await;
    let begun = Begun::default();
    let count = begun.clone();
    let workflow = move |ctx: WorkflowContext, (): ()| {
        let begun = count.clone();
        async move {
            let mut packed = 0;
            for order in 0..3_u32 {
                let begun = begun.clone();
                packed += ctx
                    .run_scope("order", move |ctx| async move {
                        begun.fetch_add(1, Ordering::SeqCst);
                        let one: u32 = ctx.run("pick", async move { Ok(order) }).await?;
                        ctx.run("pack", async move { Ok(one + 1) }).await
                    })
                    .await?;
                ctx.sleep(HOUR).await?;
            }
            Ok(packed)
        }
    };

    let run = started(
        &engine,
        |worker| {
            worker.register("w", workflow);
        },
        (),
    )
    .await;

    assert_eq!(run.result::<u32>().await.unwrap(), 1 + 2 + 3);
    assert_eq!(begun.load(Ordering::SeqCst), 3, "three replays, and each scope was executed once");
    let history = engine.history(run.run_id()).await;
    let scopes: Vec<_> = history.steps().into_iter().filter(|step| step.ends_with('/')).collect();
    assert_eq!(scopes, ["order/", "order#2/", "order#3/"]);
    let result: serde_json::Value = history.result_of("order/");
    assert_eq!(result["value"], 1);
    engine.close().await;
}

/// Scopes in a race, in a gathering, in a spawned part, in each other, with a sleep and a failure inside.
async fn mixture(ctx: WorkflowContext, (): ()) -> anyhow::Result<u64> {
    let slow = ctx.run_scope("slow", |ctx| async move {
        ctx.sleep(10 * HOUR).await?;
        ctx.run("never", async { Ok(1_000_u64) }).await
    });
    let quick = ctx.run_scope("quick", |ctx| async move {
        let inner = ctx.run_scope("inner", |ctx| async move {
            ctx.sleep(HOUR).await?;
            ctx.run("step", async { Ok(1_u64) }).await
        });
        Ok(inner.await? + ctx.run("step", async { Ok(10_u64) }).await?)
    });
    let raced = match ctx.race(slow, quick).await {
        Raced::First(ended) | Raced::Second(ended) => ended?,
    };
    let many = (0..3_u64).map(|n| {
        ctx.run_scope("item", move |ctx| async move {
            if n == 1 {
                let failed = ctx.run("fails", async { Err::<u64, _>(NonRetryableError::new("no").into()) });
                assert!(failed.await.is_err());
            }
            let parts = ctx.clone();
            let part = ctx.spawn(async move { parts.scope("part").run("one", async move { Ok(n) }).await });
            Ok(part.await? + ctx.run("two", async move { Ok(n) }).await?)
        })
    });
    let many: Vec<u64> = ctx.gather(many).at_once(2).await.into_result()?;
    ctx.sleep(HOUR).await?;
    Ok(raced + many.iter().sum::<u64>())
}

#[tokio::test]
async fn a_crash_at_any_commit_changes_nothing() {
    let register = |worker: &mut kagzi::Worker| {
        worker.register("mixture", mixture);
    };

    let report = crash_everywhere(register, "mixture", ()).await;

    assert!(report.crash_points() > 20, "{report}");
    assert_eq!(report.executions_of("slow/never"), 0);
    let trial = crash_after_every_report(register, "mixture", (), Crashes::AfterEveryReport).await;
    trial.history.assert_completed();
    assert_eq!(trial.history.run().output::<u64>().unwrap(), 11 + (1 + 2) * 2);
}

/// Whatever of a run is known by a name of its own may be used in a scope.
async fn telling(ctx: WorkflowContext, (): ()) -> anyhow::Result<u64> {
    let mut sum = 0;
    for round in 0..3_u64 {
        let told = ctx.run_scope("round", move |ctx| async move {
            ctx.set_value("round", &round)?;
            let _nobody = ctx.promise::<u64>(&format!("nobody-{round}")).timeout(HOUR).await?;
            let number: u64 = ctx.signal("number").await?;
            ctx.set_label("round", &round.to_string()).await?;
            ctx.set_value("round", &(round * 10 + number))?;
            ctx.run("note", async move { Ok(number) }).await
        });
        sum += told.await?;
    }
    // A replay that does not execute the scopes must not count from one again.
    ctx.set_value("round", "all")?;
    ctx.sleep(HOUR).await?;
    anyhow::ensure!(ctx.promise::<u64>("nobody-1").await.is_err(), "the name is taken");
    Ok(sum)
}

#[tokio::test]
async fn values_promises_and_signals_inside_outlast_their_scope() {
    for crashes in [Crashes::Never, Crashes::AfterEveryReport] {
        let register = |worker: &mut kagzi::Worker| {
            worker.register("telling", telling);
        };
        let told = (1..=3_u64).map(|number| ("number".to_owned(), number.into())).collect();

        let trial = crash_while_signalled(register, "telling", (), crashes, told).await;

        trial.history.assert_completed();
        assert_eq!(trial.history.run().output::<u64>().unwrap(), 6);
        let values: Vec<_> =
            trial.history.events().iter().filter(|event| event.kind == "value_set").collect();
        let last = values.last().and_then(|event| event.payload.as_ref()).expect("values were set");
        assert_eq!(last.decode::<String>().unwrap(), "all");
    }
}

#[tokio::test]
async fn a_value_that_is_set_after_a_scope_counts_although_a_replay_does_not_execute_the_scope() {
    let engine = TestEngine::start().await;
    let workflow = |ctx: WorkflowContext, (): ()| async move {
        let scope = ctx.run_scope("rows", |ctx| async move {
            for row in 0..5_u32 {
                ctx.set_value("row", &row)?;
                ctx.run("import", async { Ok(()) }).await?;
            }
            Ok(())
        });
        scope.await?;
        ctx.sleep(HOUR).await?;
        ctx.set_value("row", "done")
    };

    let run = started(
        &engine,
        |worker| {
            worker.register("w", workflow);
        },
        (),
    )
    .await;
    run.result::<()>().await.unwrap();

    let value = run.value::<String>("row").await.unwrap();
    assert_eq!(value.expect("it was set").value, "done");
    engine.close().await;
}

#[tokio::test]
async fn an_error_names_its_scope_and_a_retried_run_goes_on_inside() {
    let engine = TestEngine::start().await;
    let (begun, open) = (Begun::default(), Arc::new(AtomicU32::new(0)));
    let workflow = {
        let (begun, open) = (begun.clone(), open.clone());
        move |ctx: WorkflowContext, (): ()| {
            let (begun, open) = (begun.clone(), open.clone());
            async move {
                let first = ctx.run_scope("first", |ctx| async move { ctx.run("a", async { Ok(1) }).await });
                let first: u32 = first.await?;
                let second = ctx.run_scope("second", move |ctx| async move {
                    begun.fetch_add(1, Ordering::SeqCst);
                    let before: u32 = ctx.run("before", async { Ok(10) }).await?;
                    let shop = open.clone();
                    let code = async move {
                        match shop.load(Ordering::SeqCst) {
                            0 => Err(NonRetryableError::new("the shop is closed").into()),
                            _ => Ok(before),
                        }
                    };
                    let bought: u32 = ctx.run("buy", code).await?;
                    anyhow::ensure!(open.load(Ordering::SeqCst) > 1, "nobody is there");
                    Ok(bought)
                });
                Ok(first + second.await?)
            }
        }
    };
    let run = started(
        &engine,
        |worker| {
            worker.register("w", workflow);
        },
        (),
    )
    .await;

    let failed = run.result::<u32>().await.unwrap_err().to_string();
    assert!(failed.contains("second/buy") && failed.contains("the shop is closed"), "{failed}");
    // What lies in a recorded scope is over, and so is the scope itself.
    for step in ["first/a", "first/"] {
        assert!(run.retry_from(step).await.is_err(), "{step}");
    }
    open.store(1, Ordering::SeqCst);
    run.retry_from("second/buy").await.unwrap();
    let failed = run.result::<u32>().await.unwrap_err().to_string();
    assert!(failed.contains("in scope 'second': nobody is there"), "{failed}");
    open.store(2, Ordering::SeqCst);
    run.retry().await.unwrap();

    assert_eq!(run.result::<u32>().await.unwrap(), 11);
    assert_eq!(begun.load(Ordering::SeqCst), 3, "a scope that failed is executed again");
    let history = engine.history(run.run_id()).await;
    history.assert_attempts("second/before", 1).assert_attempts("first/a", 1);
    engine.close().await;
}

#[tokio::test]
async fn whatever_belongs_to_another_scope_is_an_error_at_the_first_execution() {
    let inner_uses_outer = |ctx: WorkflowContext, (): ()| async move {
        let outer = ctx.clone();
        ctx.run_scope("s", |_| async move { outer.run("step", async { Ok(()) }).await }).await
    };
    let part_uses_outer = |ctx: WorkflowContext, (): ()| async move {
        let outer = ctx.clone();
        let scope = ctx.run_scope("s", |ctx| async move {
            ctx.spawn(async move { outer.run("step", async { Ok(()) }).await }).await
        });
        scope.await
    };
    let outer_uses_inner = |ctx: WorkflowContext, (): ()| async move {
        let mut kept = None;
        ctx.run_scope("s", |ctx| {
            kept = Some(ctx);
            async { Ok(()) }
        })
        .await?;
        kept.expect("it was kept").run("step", async { Ok(()) }).await
    };
    let part_outlives = |ctx: WorkflowContext, (): ()| async move {
        let mut kept = None;
        let scope = ctx.run_scope("s", |ctx| {
            let part = ctx.clone();
            let part = ctx.spawn(async move {
                part.sleep(HOUR).await?;
                part.run("step", async { Ok(()) }).await
            });
            kept = Some(part);
            async move { ctx.run("other", async { Ok(()) }).await }
        });
        scope.await?;
        kept.expect("it was kept").await
    };
    let engine = TestEngine::start().await;
    engine
        .work("q", |worker| {
            worker.register("inner-uses-outer", inner_uses_outer);
            worker.register("part-uses-outer", part_uses_outer);
            worker.register("outer-uses-inner", outer_uses_inner);
            worker.register("part-outlives", part_outlives);
        })
        .await;
    engine.skip_time();

    for workflow in ["inner-uses-outer", "part-uses-outer", "outer-uses-inner", "part-outlives"] {
        let run = engine.client().workflow(workflow, "q", ()).await.unwrap();
        let failed = run.result::<()>().await.unwrap_err().to_string();
        assert!(failed.contains("belongs to another scope"), "{workflow}: {failed}");
        assert_eq!(run.describe().await.unwrap().error.unwrap().code, "OTHER_SCOPE", "{workflow}");
    }
    engine.close().await;
}

#[tokio::test]
async fn what_is_heard_inside_counts_the_same_in_every_replay() {
    let engine = TestEngine::start().await;
    let begun = Begun::default();
    let count = begun.clone();
    let workflow = move |ctx: WorkflowContext, (): ()| {
        let begun = count.clone();
        async move {
            let mut rounds = 0_u32;
            while !ctx.should_continue() {
                let begun = begun.clone();
                rounds += 1;
                let scope = ctx.run_scope("round", move |ctx| async move {
                    begun.fetch_add(1, Ordering::SeqCst);
                    let steps = (0..500_u32).map(|n| ctx.run("step", async move { Ok(n) }));
                    ctx.gather(steps).at_once(50).await.into_result().map(|steps: Vec<u32>| steps.len())
                });
                scope.await?;
            }
            ctx.sleep(HOUR).await?;
            Ok(rounds)
        }
    };

    let run = started(
        &engine,
        |worker| {
            worker.register("w", workflow);
        },
        (),
    )
    .await;

    assert_eq!(run.result::<u32>().await.unwrap(), 10, "501 ends in each");
    assert_eq!(begun.load(Ordering::SeqCst), 10, "the replay stopped at the same line");
    engine.close().await;
}

#[tokio::test]
async fn a_run_may_continue_in_place_from_inside_a_scope() {
    let engine = TestEngine::start().await;
    let workflow = |ctx: WorkflowContext, left: u32| async move {
        let scope = ctx.run_scope("round", move |ctx| async move {
            let left: u32 = ctx.run("count", async move { Ok(left) }).await?;
            if left > 0 { ctx.continue_as_new(&(left - 1)) } else { Ok(left) }
        });
        scope.await
    };

    let run = started(
        &engine,
        |worker| {
            worker.register("w", workflow);
        },
        3_u32,
    )
    .await;

    assert_eq!(run.result::<u32>().await.unwrap(), 0);
    let ended = run.describe().await.unwrap();
    assert_eq!((ended.generation, ended.status), (4, RunStatus::Completed));
    engine.close().await;
}
