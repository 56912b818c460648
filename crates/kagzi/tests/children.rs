//! Runs that start runs, as users write it.

use std::time::Duration;

use kagzi::WorkflowContext;
use kagzi::client::{IdReuse, RunStatus};
use kagzi::testing::{Crashes, TestEngine, crash_after_every_report, crash_everywhere};
use kagzi::workflow::{ClosePolicy, NonRetryableError, StepError, StepFailure};

const HOUR: Duration = Duration::from_secs(3600);

async fn double(_: WorkflowContext, number: u64) -> anyhow::Result<u64> {
    Ok(number * 2)
}

async fn picky(_: WorkflowContext, number: u64) -> anyhow::Result<u64> {
    if number.is_multiple_of(3) {
        return Err(StepFailure::new("NOT_GOOD", format!("{number} is not good")).into());
    }
    Ok(number)
}

async fn patient(ctx: WorkflowContext, _: u64) -> anyhow::Result<String> {
    ctx.signal("go").await
}

async fn parent(ctx: WorkflowContext, number: u64) -> anyhow::Result<u64> {
    let twice: u64 = ctx.child("double", &number).await?;
    ctx.child("double", &twice).await
}

async fn later(ctx: WorkflowContext, number: u64) -> anyhow::Result<String> {
    let child = ctx.child::<u64>("double", &number).start().await?;
    ctx.sleep(HOUR).await?;
    let twice = child.result().await?;
    Ok(format!("{twice} by {}", child.run_id()))
}

async fn gathering(ctx: WorkflowContext, count: u64) -> anyhow::Result<Vec<String>> {
    let ends: Vec<anyhow::Result<u64>> = ctx.children("picky", 1..=count).await;
    Ok(ends.into_iter().map(|end| end.map_or_else(code_of, |number| number.to_string())).collect())
}

async fn hasty(ctx: WorkflowContext, count: u64) -> anyhow::Result<String> {
    let all = ctx.children::<u64>("picky", 1..=count).fail_fast().await;
    Ok(all.map_or_else(code_of, |numbers| format!("{numbers:?}")))
}

async fn waiting(ctx: WorkflowContext, _: u64) -> anyhow::Result<String> {
    let stubborn = ctx.child::<String>("patient", &0).id("stubborn").on_close(ClosePolicy::Terminate);
    stubborn.start().await?;
    ctx.child::<String>("patient", &0).id("free").detach().await?;
    ctx.child("patient", &0).id("awaited").await
}

async fn grandparent(ctx: WorkflowContext, number: u64) -> anyhow::Result<String> {
    ctx.child("waiting", &number).id("middle").await
}

async fn limited(ctx: WorkflowContext, _: u64) -> anyhow::Result<String> {
    let end: Option<String> = ctx.child("patient", &0).id("slow").timeout(HOUR).await?;
    ctx.run("note", async { Ok(()) }).await?;
    Ok(end.unwrap_or_else(|| "not within an hour".to_owned()))
}

fn code_of(error: anyhow::Error) -> String {
    error.downcast_ref::<StepError>().map_or_else(|| error.to_string(), |step| step.code.clone())
}

fn register(worker: &mut kagzi::Worker) {
    worker.register("double", double).register("picky", picky).register("patient", patient);
    worker.register("parent", parent).register("later", later).register("gathering", gathering);
    worker.register("hasty", hasty).register("waiting", waiting).register("limited", limited);
    worker.register("grandparent", grandparent);
}

async fn engine() -> TestEngine {
    let engine = TestEngine::start().await;
    engine.work("q", register).await;
    engine
}

async fn of_type(engine: &TestEngine, workflow_type: &str) -> Vec<kagzi::client::Run> {
    engine.client().runs().workflow_type(workflow_type).all().await.unwrap()
}

#[tokio::test]
async fn a_run_waits_for_its_child_and_gets_its_output() {
    let engine = engine().await;

    let run = engine.client().workflow("parent", "q", 5).await.unwrap();

    assert_eq!(run.result::<u64>().await.unwrap(), 20);
    let children = of_type(&engine, "double").await;
    assert_eq!(children.len(), 2);
    assert!(
        children.iter().all(|child| child.parent_run_id.as_deref() == Some(run.run_id())),
        "{children:?}"
    );
}

#[tokio::test]
async fn a_child_is_started_now_and_awaited_later() {
    let engine = engine().await;

    let run = engine.client().workflow("later", "q", 5).await.unwrap();
    engine.settle().await;
    engine.advance(HOUR);

    let answer: String = run.result().await.unwrap();
    let child = of_type(&engine, "double").await.remove(0);
    assert_eq!(answer, format!("10 by {}", child.run_id));
}

#[tokio::test]
async fn a_hundred_children_wake_their_parent_once_and_each_keeps_its_own_end() {
    let engine = engine().await;

    let run = engine.client().workflow("gathering", "q", 100).await.unwrap();

    let ends: Vec<String> = run.result().await.unwrap();
    let expected: Vec<String> =
        (1..=100).map(|n| if n % 3 == 0 { "NOT_GOOD".to_owned() } else { n.to_string() }).collect();
    assert_eq!(ends, expected);
    let dispatches = run.describe().await.unwrap().dispatch_count;
    assert!(dispatches <= 2, "it was given to a worker {dispatches} times");
}

#[tokio::test]
async fn one_failure_is_enough_for_those_who_are_in_a_hurry() {
    let engine = engine().await;

    let run = engine.client().workflow("hasty", "q", 20).await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "NOT_GOOD");

    let run = engine.client().workflow("hasty", "q", 2).await.unwrap();
    assert_eq!(run.result::<String>().await.unwrap(), "[1, 2]");
}

#[tokio::test]
async fn what_a_run_has_started_ends_with_it_as_it_asked_for_also_further_down() {
    let engine = engine().await;
    let client = engine.client();
    let top = client.workflow("grandparent", "q", 0).await.unwrap();
    engine.settle().await;
    let child = async |id: &str| client.get_by_id(id).await.unwrap();
    let ended = async |id: &str| client.handle(child(id).await.run_id).finished().await.unwrap();
    assert_eq!(child("awaited").await.status, RunStatus::Sleeping);

    top.cancel("enough").await.unwrap();

    let awaited = ended("awaited").await;
    let stubborn = ended("stubborn").await;
    assert_eq!((awaited.status, stubborn.status), (RunStatus::Cancelled, RunStatus::Failed));
    assert_eq!(child("middle").await.status, RunStatus::Cancelled);
    assert_eq!(child("free").await.status, RunStatus::Sleeping, "it was left to itself");
    let why = awaited.status_detail;
    assert!(why.contains("its parent run"), "{why}");
}

#[tokio::test]
async fn a_child_that_takes_too_long_is_left_behind() {
    let engine = engine().await;
    let run = engine.client().workflow("limited", "q", 0).await.unwrap();
    engine.settle().await;
    let why = run.explain().await.unwrap().sentence;
    assert!(why.contains("it waits for child run") && why.contains("kagzi run tree"), "{why}");
    engine.advance(HOUR);

    assert_eq!(run.result::<String>().await.unwrap(), "not within an hour");
}

#[tokio::test]
async fn an_id_that_another_run_has_is_an_error_that_the_code_can_catch() {
    let engine = engine().await;
    let other = engine.client().workflow("patient", "q", 0).id("slow").reuse(IdReuse::Reject);
    let other = other.await.unwrap();

    let run = engine.client().workflow("limited", "q", 0).await.unwrap();

    let error = run.result::<String>().await.unwrap_err().to_string();
    assert!(error.contains("CHILD_NOT_STARTED") && error.contains(other.run_id()), "{error}");
}

#[tokio::test]
async fn a_parent_that_is_retried_gets_another_child_in_place_of_the_one_that_failed() {
    let engine = TestEngine::start().await;
    let good = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_good = good.clone();
    engine
        .work("q", move |worker| {
            worker.register("moody", move |_: WorkflowContext, number: u64| {
                let is_good = is_good.load(std::sync::atomic::Ordering::SeqCst);
                async move {
                    anyhow::ensure!(is_good, NonRetryableError::new("not today"));
                    Ok(number)
                }
            });
            worker.register("parent", |ctx: WorkflowContext, number: u64| async move {
                let before: u64 = ctx.run("before", async move { Ok(number + 1) }).await?;
                ctx.child::<u64>("moody", &before).id("the-child").await
            });
        })
        .await;
    let run = engine.client().workflow("parent", "q", 1).await.unwrap();
    run.result::<u64>().await.unwrap_err();
    good.store(true, std::sync::atomic::Ordering::SeqCst);

    run.retry().await.unwrap();

    assert_eq!(run.result::<u64>().await.unwrap(), 2);
    assert_eq!(of_type(&engine, "moody").await.len(), 2);
}

#[tokio::test]
async fn a_parent_that_dies_at_every_commit_starts_each_child_once() {
    for (workflow, input) in [("parent", 5), ("gathering", 7), ("hasty", 5)] {
        let report = crash_everywhere(register, workflow, input).await;
        assert!(report.crash_points() > 2, "{report:?}");
    }
    let trial = crash_after_every_report(register, "parent", 3, Crashes::AfterEveryReport).await;
    trial.history.assert_completed();
    let started = trial.history.events().iter().filter(|event| event.kind == "child_started").count();
    assert_eq!(started, 2, "{}", trial.history);
}
