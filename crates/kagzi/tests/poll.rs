//! `ctx.poll`: one step, however often it looks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kagzi::testing::{Crashes, TestEngine, crash_after_every_report};
use kagzi::workflow::NonRetryableError;
use kagzi::{StepContext, WorkflowContext};

const MINUTE: Duration = Duration::from_secs(60);

/// Finds something at this look.
async fn found(step: StepContext, at: u32) -> anyhow::Result<Option<u32>> {
    Ok((step.attempt() >= at).then_some(step.attempt()))
}

#[tokio::test]
async fn many_looks_are_one_step_and_leave_the_retries_of_others_alone() {
    const LOOKS: u32 = 60;
    let functions = Arc::new(AtomicU64::new(0));
    let counted = functions.clone();
    let engine = TestEngine::start().await;
    let workflow = move |ctx: WorkflowContext, ()| {
        functions.fetch_add(1, Ordering::SeqCst);
        async move {
            let looks: u32 =
                ctx.poll("paid").every(MINUTE).slower_by(1.0).look(|step| found(step, LOOKS)).await?;
            // The default lets a run retry twenty times in all.
            let retried = ctx.step("retried").run(|step| async move {
                anyhow::ensure!(step.attempt() > 3, "down");
                Ok(step.attempt())
            });
            Ok(looks + retried.await?)
        }
    };
    engine
        .work("polls", |worker| {
            worker.register("poll", workflow);
        })
        .await;
    engine.skip_time();

    let run = engine.client().workflow("poll", "polls", ()).await.unwrap();
    let output: u32 = run.result().await.unwrap();

    assert_eq!(output, LOOKS + 4);
    let history = engine.history(run.run_id()).await;
    assert_eq!(history.attempts_of("paid"), LOOKS);
    let mut steps: Vec<_> = history.steps();
    steps.dedup();
    assert_eq!(steps, ["paid", "retried"]);
    assert!(counted.load(Ordering::SeqCst) >= u64::from(LOOKS), "no worker was held between two looks");
    engine.close().await;
}

#[tokio::test]
async fn a_poll_goes_on_where_its_worker_died_and_is_given_up_in_time() {
    let register = |worker: &mut kagzi::Worker| {
        worker.register("poll", |ctx: WorkflowContext, ()| async move {
            let looks = ctx.poll("paid").every(Duration::from_millis(5)).look(|step| found(step, 4)).await?;
            let never = ctx.poll("never").every(MINUTE).look(|_| async { Ok(None::<u32>) });
            let given_up = ctx.timeout(10 * MINUTE, never).await?;
            Ok((looks >= 4, given_up))
        });
    };
    let trial = crash_after_every_report(register, "poll", (), Crashes::AfterEveryReport).await;

    let output = trial.history.assert_completed().run().output.clone().expect("it has completed");
    assert_eq!(output.decode::<(bool, Option<u32>)>().unwrap(), (true, None));
}

#[tokio::test]
async fn an_error_is_looked_past_unless_it_is_final() {
    let register = |worker: &mut kagzi::Worker| {
        worker.register("poll", |ctx: WorkflowContext, ()| async move {
            let flaky = ctx.poll("flaky").every(Duration::from_millis(5)).look(|step| async move {
                anyhow::ensure!(step.attempt() > 2, "down");
                found(step, 3).await
            });
            let looks = flaky.await?;
            let gone = ctx.poll("gone").look(|_| async {
                Err::<Option<u32>, _>(NonRetryableError::new("there is no such order").into())
            });
            Ok((looks, gone.await.is_err()))
        });
    };
    let trial = crash_after_every_report(register, "poll", (), Crashes::Never).await;

    let output = trial.history.assert_completed().run().output.clone().expect("it has completed");
    assert_eq!(output.decode::<(u32, bool)>().unwrap(), (3, true));
}
