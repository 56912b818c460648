use std::time::Duration;

use kagzi::client::RunStatus;
use kagzi::testing::TestEngine;
use kagzi::{Error, RetryPolicy, WorkflowContext};

use crate::seconds;

async fn patient(ctx: WorkflowContext, _: ()) -> anyhow::Result<()> {
    ctx.sleep(seconds(24 * 3600)).await?;
    Ok(())
}

async fn unlucky(ctx: WorkflowContext, _: ()) -> anyhow::Result<()> {
    let policy = RetryPolicy::default().initial_interval(seconds(600)).maximum_interval(seconds(600));
    ctx.step("charge").retry_policy(policy).run(|_| async { anyhow::bail!("down") }).await
}

#[tokio::test]
async fn a_deadline_ends_a_sleeping_and_a_retrying_run_on_time() {
    let engine = TestEngine::start().await;
    engine
        .work("q", |worker| {
            worker.register("patient", patient).register("unlucky", unlucky);
        })
        .await;
    let mut runs = Vec::new();
    for workflow_type in ["patient", "unlucky"] {
        let start = engine.client().workflow(workflow_type, "q", ());
        runs.push(start.deadline(engine.now() + seconds(60)).await.unwrap());
    }
    engine.settle().await;

    engine.advance(Duration::from_millis(59_900));
    engine.settle().await;
    for run in &runs {
        let history = engine.history(run.run_id()).await;
        assert!(history.run().finished_at.is_none(), "{history}");
    }
    engine.advance(Duration::from_millis(100));

    for run in &runs {
        let Error::RunFailed(failed) = run.result::<()>().await.unwrap_err() else { panic!("no verdict") };
        assert_eq!(failed.status, RunStatus::TimedOut);
    }
}

#[tokio::test]
async fn a_deadline_stops_a_step_that_runs() {
    let engine = TestEngine::start().await;
    let (began, begins) = tokio::sync::watch::channel(false);
    let (alive, dropped) = tokio::sync::oneshot::channel::<()>();
    let alive = parking_lot::Mutex::new(Some(alive));
    let function = move |ctx: WorkflowContext, (): ()| {
        let (began, alive) = (began.clone(), alive.lock().take());
        async move {
            let hang = async move {
                let _alive = alive;
                began.send_replace(true);
                std::future::pending::<anyhow::Result<()>>().await
            };
            ctx.run("hang", hang).await
        }
    };
    engine
        .work("q", |worker| {
            worker.register("w", function);
        })
        .await;
    let run = engine.client().workflow("w", "q", ()).execution_timeout(seconds(60)).await.unwrap();
    begins.clone().wait_for(|began| *began).await.unwrap();

    engine.advance(seconds(60));

    let Error::RunFailed(failed) = run.result::<()>().await.unwrap_err() else { panic!("no verdict") };
    assert_eq!(failed.status, RunStatus::TimedOut);
    dropped.await.unwrap_err();
}

#[tokio::test]
async fn the_earlier_of_deadline_and_execution_timeout_counts_and_a_past_deadline_is_refused() {
    let engine = TestEngine::start().await;
    engine
        .work("q", |worker| {
            worker.register("patient", patient);
        })
        .await;
    engine.skip_time();
    let start = || engine.client().workflow("patient", "q", ());
    let began = engine.now();

    let run = start().deadline(began + seconds(3600)).execution_timeout(seconds(60)).await.unwrap();
    run.result::<()>().await.unwrap_err();
    assert_eq!(engine.now().duration_since(began).unwrap(), seconds(60));

    let past = start().deadline(engine.now() - seconds(1)).await;
    assert!(matches!(past, Err(Error::Refused(_))), "a past deadline was accepted");
}
