use std::time::Duration;

use anyhow::ensure;
use kagzi::testing::TestEngine;
use kagzi::{StepContext, WorkflowContext};

use crate::{Count, seconds, start};

#[tokio::test]
async fn the_next_attempt_goes_on_where_the_last_one_failed() {
    let engine = TestEngine::start().await;
    let count = Count::default();
    let rows = count.clone();
    let function = move |ctx: WorkflowContext, (): ()| {
        let rows = rows.clone();
        async move {
            let import = |step: StepContext| {
                let rows = rows.clone();
                async move {
                    for row in step.last_progress::<u32>().map_or(0, |row| row + 1)..10 {
                        ensure!(row != 5 || step.attempt() > 1, "connection lost");
                        rows.up();
                        step.heartbeat(&row);
                    }
                    Ok(step.last_progress::<u32>())
                }
            };
            ctx.step("import").run(import).await
        }
    };
    engine
        .work("q", |worker| {
            worker.register("w", function);
        })
        .await;
    engine.skip_time();

    let run = start(&engine, "w").await;

    assert_eq!(run.result::<Option<u32>>().await.unwrap(), Some(4));
    assert_eq!(count.get(), 10, "no row was imported twice");
}

#[tokio::test]
async fn the_server_ends_an_attempt_that_hangs_although_its_worker_lives() {
    let engine = TestEngine::start().await;
    let count = Count::default();
    let executions = count.clone();
    let function = move |ctx: WorkflowContext, (): ()| {
        let executions = executions.clone();
        async move {
            // Real time hardly passes, so the worker's own limit does not end it.
            let hang = ctx.step("hang").timeout(seconds(600)).run(|step: StepContext| {
                let (n, attempt) = (executions.up(), step.attempt());
                async move {
                    if n == 1 {
                        step.heartbeat(&"half way");
                        std::future::pending::<()>().await;
                    }
                    Ok((attempt, step.last_progress::<String>()))
                }
            });
            hang.await
        }
    };
    engine
        .work("q", |worker| {
            worker.register("w", function);
        })
        .await;
    let run = start(&engine, "w").await;
    while !engine.history(run.run_id()).await.events().iter().any(|event| event.kind == "step_progressed") {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    // Written down after a second, ended after its limit and a little, retried a second later.
    for _ in 0..700 {
        engine.advance(seconds(1));
        tokio::time::sleep(Duration::from_micros(500)).await;
    }

    let (attempt, progress) = run.result::<(u32, Option<String>)>().await.unwrap();
    assert_eq!((attempt, progress.as_deref()), (2, Some("half way")));
    let history = engine.history(run.run_id()).await;
    let failed =
        history.events().iter().find(|event| event.kind == "step_failed").expect("a timed-out attempt");
    assert!(failed.detail.to_string().contains("TIMED_OUT"), "{}", failed.detail);
}
