//! A step that the code drops while the server knows that it runs.

use std::sync::Arc;
use std::time::Duration;

use kagzi::WorkflowContext;
use kagzi::testing::TestEngine;
use tokio::sync::Notify;

use crate::{Count, seconds, start};

const HOUR: Duration = Duration::from_secs(3600);

/// What the test tells the workflow, and what it counts.
#[derive(Clone, Default)]
struct Strings {
    give_up: Arc<Notify>,
    finish: Arc<Notify>,
    long: Count,
}

async fn quoted(ctx: WorkflowContext, strings: Strings) -> anyhow::Result<u32> {
    let slow = ctx.step("quote").timeout(6 * HOUR).run(|_| std::future::pending::<anyhow::Result<u32>>());
    tokio::select! {
        _ = slow => anyhow::bail!("nobody answers"),
        () = strings.give_up.notified() => {}
    }
    let long = ctx.step("long").timeout(48 * HOUR).run(|_| {
        let executions = strings.long.up();
        let finish = strings.finish.clone();
        async move {
            finish.notified().await;
            Ok(executions)
        }
    });
    long.await
}

/// Waits until the history has an event of this kind, while time passes like this.
async fn until(engine: &TestEngine, run: &str, kind: &str, passes: Duration) {
    for _ in 0..2_000 {
        engine.advance(passes);
        if engine.history(run).await.events().iter().any(|event| event.kind == kind) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("no {kind} in {}", engine.history(run).await);
}

#[tokio::test]
async fn a_dropped_step_does_not_time_out_and_take_the_healthy_run_away() {
    let engine = TestEngine::start().await;
    let strings = Strings::default();
    let given = strings.clone();
    engine
        .work("q", |worker| {
            worker.register("quoted", move |ctx, ()| quoted(ctx, given.clone()));
        })
        .await;
    let run = start(&engine, "quoted").await;
    // The server writes down that a step runs when it has heard of it for a second.
    until(&engine, run.run_id(), "step_started", seconds(1)).await;

    strings.give_up.notify_one();
    until(&engine, run.run_id(), "step_closed", Duration::ZERO).await;
    // Another run that ends by its deadline shows that the server has looked at what is overdue.
    let witness = engine.client().workflow("nobody's", "q", ()).execution_timeout(HOUR);
    let witness = witness.await.unwrap();
    engine.advance(24 * HOUR);
    witness.result::<()>().await.unwrap_err();
    strings.finish.notify_one();

    assert_eq!(run.result::<u32>().await.unwrap(), 1);
    let history = engine.history(run.run_id()).await;
    assert_eq!((history.run().dispatch_count, strings.long.get()), (1, 1), "{history}");
}
