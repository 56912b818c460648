//! Which commits the crash tests of the kit cover: every kind of report of a worker is one before and after
//! which it dies.

use std::time::Duration;

use kagzi::testing::{crash_everywhere, crash_everywhere_while_signalled};
use kagzi::workflow::{NonRetryableError, Raced};
use kagzi::{RetryPolicy, WorkflowContext};

const HOUR: Duration = Duration::from_secs(3600);

async fn double(ctx: WorkflowContext, number: u64) -> anyhow::Result<u64> {
    ctx.run("double", async move { Ok(number * 2) }).await
}

/// All that a workflow can wait for and write down, in two generations.
async fn everything(ctx: WorkflowContext, before: u64) -> anyhow::Result<u64> {
    let mut sum = before;
    ctx.set_value("sum", &sum)?;
    ctx.set_label("generation", &ctx.generation().to_string()).await?;
    let policy = RetryPolicy::default().maximum_attempts(9);
    let flaky = ctx.step("flaky").retry_policy(policy).run(|step| async move {
        anyhow::ensure!(step.attempt() > 1, "not at first");
        Ok(1_u64)
    });
    sum += flaky.await?;
    if ctx.generation() > 1 {
        ctx.set_value("sum", &sum)?;
        return Ok(sum);
    }
    let failed = ctx.run("failed", async { Err::<u64, _>(NonRetryableError::new("no").into()) });
    anyhow::ensure!(failed.await.is_err(), "it fails for good");
    sum += ctx.child::<u64>("double", &10).await?;
    let children = ctx.children::<u64>("double", [100, 200]).await;
    sum += children.into_iter().sum::<anyhow::Result<u64>>()?;
    sum += ctx.signal::<u64>("number").await?;
    let timed = ctx.signal::<u64>("nobody").timeout(HOUR).await?;
    anyhow::ensure!(timed.is_none(), "nobody says anything");
    let promise = ctx.promise::<u64>(&format!("promise-{}", ctx.generation())).timeout(HOUR).await?;
    anyhow::ensure!(promise.await.is_err(), "nobody completes it");
    let scope = ctx.run_scope("scope", |ctx| async move {
        let word: u64 = ctx.signal("number").await?;
        ctx.sleep(HOUR).await?;
        ctx.run("inside", async move { Ok(word) }).await
    });
    sum += scope.await?;
    let two = futures_util::future::join(
        ctx.run("left", async { Ok(1_u64) }),
        ctx.run("right", async { Ok(2_u64) }),
    );
    let (left, right) = two.await;
    sum += left? + right?;
    match ctx.race(ctx.sleep(HOUR), ctx.sleep(2 * HOUR)).await {
        Raced::First(over) => over?,
        Raced::Second(_) => anyhow::bail!("the longer sleep was over first"),
    }
    anyhow::ensure!(ctx.signals::<u64>("number").last_call().await?.is_none(), "nothing is left");
    ctx.continue_as_new(&sum)
}

async fn fails(ctx: WorkflowContext, (): ()) -> anyhow::Result<()> {
    ctx.run("one", async { Ok(()) }).await?;
    anyhow::bail!("on purpose")
}

#[tokio::test]
async fn a_worker_dies_before_and_after_every_kind_of_report_and_nothing_changes() {
    let register = |worker: &mut kagzi::Worker| {
        worker.register("everything", everything).register("double", double);
    };
    let told = (1..=2_u64).map(|number| ("number".to_owned(), number.into())).collect();

    let report = crash_everywhere_while_signalled(register, "everything", 0_u64, told).await;

    println!("{report}");
    let kinds = [
        "value 'sum' was set",
        "label 'generation' was set",
        "step 'flaky' failed",
        "step 'failed' failed",
        "child 'double' was started",
        "child 'double#3' was started",
        "'number' waited",
        "'nobody' waited",
        "promise 'promise-1' was made",
        "'scope/number' waited",
        "'scope/sleep' began",
        "'scope/inside', 'scope/' completed",
        "'left', 'right' completed",
        "the run was parked",
        "the run continued in place",
        "step '~2/flaky' failed",
        "the run completed",
    ];
    let died_at: Vec<&str> = report.died_at().collect();
    for kind in kinds {
        for when in ["before", "after"] {
            let died = died_at.iter().any(|moment| moment.contains(when) && moment.contains(kind));
            assert!(died, "no worker died {when} '{kind}': {died_at:#?}");
        }
    }
    assert_eq!(report.executions_of("scope/inside"), 1);
}

#[tokio::test]
async fn a_worker_dies_before_and_after_it_says_that_the_run_has_failed() {
    let register = |worker: &mut kagzi::Worker| {
        worker.register("fails", fails);
    };

    let report = crash_everywhere(register, "fails", ()).await;

    assert_eq!(report.died_at().filter(|moment| moment.contains("the run failed")).count(), 2);
}
