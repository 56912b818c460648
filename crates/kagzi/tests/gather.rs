//! `ctx.gather`: how many at once, how many are enough, how many may fail; and sleeps with names.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use kagzi::WorkflowContext;
use kagzi::testing::{Crashes, History, TestEngine, crash_after_every_report, crash_everywhere};
use kagzi::workflow::{GatherEnd, NonRetryableError};

const HOUR: Duration = Duration::from_secs(3600);

/// A step that fails for good if its number is odd.
async fn even(ctx: WorkflowContext, number: u64) -> anyhow::Result<u64> {
    let code = async move {
        anyhow::ensure!(number.is_multiple_of(2), NonRetryableError::new(format!("{number} is odd")));
        Ok(number)
    };
    ctx.run("even", code).await
}

async fn played<F, Fut>(workflow: F, crashes: Crashes) -> History
where
    F: Fn(WorkflowContext, ()) -> Fut + Send + Sync + Clone + 'static,
    Fut: Future<Output = anyhow::Result<String>> + Send + 'static,
{
    let register = move |worker: &mut kagzi::Worker| {
        worker.register("test", workflow.clone());
    };
    crash_after_every_report(register, "test", (), crashes).await.history
}

fn output(history: &History) -> String {
    let output = history.assert_completed().run().output.clone().expect("it has completed");
    output.decode().expect("a text")
}

/// Steps, a sleep and several of both in a branch, each in its place.
async fn mixture(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
    let slow = async {
        ctx.sleep(HOUR).await?;
        even(ctx.scope("slow"), 8).await
    };
    let word = ctx.signal::<u64>("word").timeout(HOUR).into_future().map(|word| Ok(word?.unwrap_or(5)));
    let branches =
        vec![slow.boxed(), even(ctx.clone(), 3).boxed(), even(ctx.clone(), 4).boxed(), word.boxed()];
    let gathered = ctx.gather(branches).await;
    assert_eq!(gathered.end, GatherEnd::All);
    assert_eq!((gathered.successes(), gathered.failures()), (3, 1));
    let shown = gathered.results.iter().map(|result| match result {
        Some(Ok(value)) => value.to_string(),
        Some(Err(_)) => "failed".to_owned(),
        None => "dropped".to_owned(),
    });
    Ok(shown.collect::<Vec<_>>().join(" "))
}

#[tokio::test]
async fn results_come_by_index_and_a_failure_is_one_of_them() {
    for crashes in [Crashes::Never, Crashes::AfterEveryReport] {
        assert_eq!(output(&played(mixture, crashes).await), "8 failed 4 5");
    }
}

#[tokio::test]
async fn a_gathering_workflow_ends_the_same_wherever_its_worker_dies() {
    let report = crash_everywhere(
        |worker| {
            worker.register("mixture", mixture);
        },
        "mixture",
        (),
    )
    .await;

    assert!(report.crash_points() >= 6, "{report}");
}

#[tokio::test]
async fn at_most_so_many_run_at_once_and_all_of_them_run() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = most.clone();
    let history = played(
        move |ctx: WorkflowContext, ()| {
            let (running, most) = (running.clone(), most.clone());
            async move {
                let branches = (0..9_u64).map(|number| {
                    let (running, most) = (running.clone(), most.clone());
                    ctx.run("branch", async move {
                        most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        tokio::time::sleep(Duration::from_millis(5)).await;
                        running.fetch_sub(1, Ordering::SeqCst);
                        Ok(number)
                    })
                });
                let gathered = ctx.gather(branches).at_once(3).await;
                Ok(format!("{:?}", gathered.into_result()?))
            }
        },
        Crashes::Never,
    )
    .await;

    assert_eq!(output(&history), "[0, 1, 2, 3, 4, 5, 6, 7, 8]");
    assert_eq!(seen.load(Ordering::SeqCst), 3);
}

/// The losers are dropped: a sleep of theirs does not wake the run, and those that waited never begin.
#[tokio::test]
async fn enough_successes_end_it_and_the_rest_is_dropped() {
    let history = played(
        |ctx: WorkflowContext, ()| async move {
            let never = async {
                ctx.sleep(HOUR).await?;
                even(ctx.scope("never"), 0).await
            };
            let mut branches = vec![never.boxed()];
            branches.extend([1, 2, 4, 6].map(|number| even(ctx.clone(), number).boxed()));
            let gathered = ctx.gather(branches).at_once(2).enough(2).await;
            let (end, shown) =
                (gathered.end, gathered.results.iter().map(Option::is_some).collect::<Vec<_>>());
            ctx.sleep(5 * HOUR).await?;
            Ok(format!("{end:?} {shown:?} {:?}", gathered.into_values()))
        },
        Crashes::AfterEveryReport,
    )
    .await;

    assert_eq!(output(&history), "Enough [false, true, true, true, false] [2, 4]");
    assert!(!history.steps().contains(&"never/even"), "{history}");
    assert!(!history.steps().contains(&"even#4"), "{history}");
}

#[tokio::test]
async fn more_failures_than_are_tolerated_end_it() {
    let history = played(
        |ctx: WorkflowContext, ()| async move {
            let odd = |count: u64| (0..count).map(|number| even(ctx.clone(), 2 * number + 1).boxed());
            let strict = ctx.gather(odd(4)).at_once(1).tolerate(1).await;
            // A share is rounded down: three of ten.
            let share = ctx.gather(odd(10)).at_once(1).tolerate_percent(39).await;
            let patient = ctx.gather(odd(3)).tolerate(3).await;
            let counts = [strict.failures(), share.failures(), patient.failures()];
            let ends = [strict.end, share.end, patient.end];
            let error = strict.into_result().expect_err("too many have failed").to_string();
            assert!(error.contains("1 is odd"), "the first one is told: {error}");
            assert_eq!(patient.into_result()?, Vec::<u64>::new());
            Ok(format!("{counts:?} {ends:?}"))
        },
        Crashes::Never,
    )
    .await;

    assert_eq!(output(&history), "[2, 4, 3] [TooManyFailures, TooManyFailures, All]");
}

/// Children are branches like any other.
#[tokio::test]
async fn children_are_gathered_with_the_same_rules() {
    let engine = TestEngine::start().await;
    engine
        .work("parts", |worker| {
            worker.register("even", even);
            worker.register("whole", |ctx: WorkflowContext, ()| async move {
                let all =
                    ctx.gather((0..6_u64).map(|number| ctx.child::<u64>("even", &number))).at_once(2).await;
                assert_eq!((all.end, all.failures()), (GatherEnd::All, 3));
                let some = ctx.gather((1..9_u64).map(|number| ctx.child::<u64>("even", &number)));
                let some = some.at_once(1).enough(2).await;
                assert_eq!(some.results.iter().flatten().count(), 4, "the fourth was the second success");
                Ok((all.into_values(), some.into_values()))
            });
        })
        .await;
    engine.skip_time();

    let run = engine.client().workflow("whole", "parts", ()).await.unwrap();
    let values: (Vec<u64>, Vec<u64>) = run.result().await.unwrap();

    assert_eq!(values, (vec![0, 2, 4], vec![2, 4]));
    engine.close().await;
}

#[tokio::test]
async fn nothing_to_gather_is_gathered_at_once() {
    let history = played(
        |ctx: WorkflowContext, ()| async move {
            let none =
                ctx.gather(Vec::<futures_util::future::BoxFuture<'_, anyhow::Result<u64>>>::new()).await;
            let unneeded = ctx.gather([even(ctx.clone(), 1)]).enough(0).await;
            Ok(format!("{:?} {:?}", none.end, unneeded.end))
        },
        Crashes::Never,
    )
    .await;

    assert_eq!(output(&history), "All Enough");
    assert!(history.steps().is_empty(), "{history}");
}

#[tokio::test]
async fn a_sleep_with_a_name_is_recorded_under_it() {
    let history = played(
        |ctx: WorkflowContext, ()| async move {
            ctx.named_sleep("trial-period", HOUR).await?;
            ctx.named_sleep("trial-period", HOUR).await?;
            ctx.sleep(HOUR).await?;
            Ok(String::new())
        },
        Crashes::AfterEveryReport,
    )
    .await;

    let slept = |name: &str| history.events().iter().any(|event| event.step.as_deref() == Some(name));
    history.assert_completed();
    assert!(["trial-period", "trial-period#2", "sleep"].into_iter().all(slept), "{history}");
}
