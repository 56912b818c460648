//! What a worker gives to everything that it executes: state, codes of typed errors, middleware; and typed
//! workflows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kagzi::client::RunStatus;
use kagzi::error::Error;
use kagzi::testing::TestEngine;
use kagzi::workflow::{BeforeRetry, Failure, Middleware, Next, StepFailure};
use kagzi::{StepContext, Workflow, WorkflowContext};

const PRICE: Workflow<u64, String> = Workflow::new("price").queue("prices");

struct Shop {
    currency: &'static str,
}

async fn price(ctx: WorkflowContext, cents: u64) -> anyhow::Result<String> {
    let look_up = |step: StepContext| async move { Ok(format!("{cents} {}", step.state::<Shop>().currency)) };
    let said: String = ctx.step("look-up").attempts(1).run(look_up).await?;
    Ok(format!("{said}, {}", ctx.state::<Shop>().currency))
}

#[tokio::test]
async fn a_typed_workflow_is_registered_and_started_by_one_constant_and_sees_the_workers_state() {
    let engine = TestEngine::start().await;
    let worker = engine.worker("prices").state(Shop { currency: "euros" }).state(Shop { currency: "cents" });
    let working = tokio::spawn(worker.register(PRICE, price).run());

    let run = engine.client().start(PRICE).input(450).id("one").await.unwrap();
    let said: String = run.result().await.unwrap();
    let by_name = engine.client().start("price").queue("prices").input(7).await.unwrap();

    assert_eq!(said, "450 cents, cents");
    assert_eq!(by_name.result::<String>().await.unwrap(), "7 cents, cents");
    assert_eq!(run.describe().await.unwrap().business_id.as_deref(), Some("one"));
    working.abort();
    engine.close().await;
}

#[tokio::test]
async fn a_worker_without_the_state_fails_the_run_and_says_how_to_give_it() {
    let engine = TestEngine::start().await;
    let working = tokio::spawn(engine.worker("prices").register(PRICE, price).run());

    let run = engine.client().start(PRICE).input(450).await.unwrap();
    let Err(Error::RunFailed(failed)) = run.result().await else { panic!("it completed") };

    assert_eq!((failed.status, failed.code.as_str()), (RunStatus::Failed, "PANIC"));
    assert!(failed.message.contains("Worker::builder(..).state(..)"), "{failed}");
    working.abort();
    engine.close().await;
}

#[derive(Debug, thiserror::Error)]
#[error("no money on card {card}")]
struct Declined {
    card: u32,
}

impl Failure for Declined {
    fn code(&self) -> String {
        "CARD_DECLINED".into()
    }
    fn class(&self) -> String {
        "permanent".into()
    }
    fn non_retryable(&self) -> bool {
        true
    }
    fn details(&self) -> Option<serde_json::Value> {
        Some(serde_json::json!({ "card": self.card }))
    }
}

async fn pay(ctx: WorkflowContext, _: ()) -> anyhow::Result<()> {
    ctx.step("charge").run(|_| async { Err(Declined { card: 4242 })? }).await
}

#[tokio::test]
async fn a_typed_error_fails_the_run_with_its_code_and_the_caller_learns_all_that_is_known() {
    let engine = TestEngine::start().await;
    let working = tokio::spawn(engine.worker("q").failure::<Declined>().register("pay", pay).run());

    let run = engine.client().workflow("pay", "q", ()).await.unwrap();
    let Err(Error::RunFailed(failed)) = run.result::<()>().await else { panic!("it completed") };

    assert_eq!((failed.code.as_str(), failed.class.as_str()), ("CARD_DECLINED", "permanent"));
    assert_eq!(failed.details, Some(serde_json::json!({ "card": 4242 })));
    assert_eq!((failed.step.as_deref(), failed.attempts), (Some("charge"), 1));
    engine.history(run.run_id()).await.assert_attempts("charge", 1);
    working.abort();
    engine.close().await;
}

#[derive(Default, Clone)]
struct Count {
    runs: Arc<AtomicU32>,
    steps: Arc<AtomicU32>,
}

impl Middleware for Count {
    fn run<'a>(&'a self, run: &'a WorkflowContext, next: Next<'a>) -> Next<'a> {
        assert!(!run.run_id().is_empty());
        self.runs.fetch_add(1, Ordering::SeqCst);
        next
    }

    fn step<'a>(&'a self, step: &'a StepContext, next: Next<'a>) -> Next<'a> {
        Box::pin(async move {
            self.steps.fetch_add(1, Ordering::SeqCst);
            anyhow::ensure!(step.path() != "forbidden", "not on this worker");
            next.await
        })
    }
}

async fn three(ctx: WorkflowContext, last: String) -> anyhow::Result<u32> {
    let one: u32 = ctx.run("one", async { Ok(1) }).await?;
    let two: u32 = ctx.step("two").run(|_| async { Ok(2) }).await?;
    let three: u32 = ctx.step(&last).attempts(1).run(|_| async { Ok(3) }).await?;
    Ok(one + two + three)
}

#[tokio::test]
async fn middleware_stands_around_runs_and_steps_and_may_refuse_them() {
    let engine = TestEngine::start().await;
    let count = Count::default();
    let worker = engine.worker("q").middleware(count.clone()).middleware(Count::default());
    let working = tokio::spawn(worker.register("three", three).run());

    let good = engine.client().workflow("three", "q", "three").await.unwrap();
    let bad = engine.client().workflow("three", "q", "forbidden").await.unwrap();

    assert_eq!(good.result::<u32>().await.unwrap(), 6);
    let Err(Error::RunFailed(failed)) = bad.result::<u32>().await else { panic!("it completed") };
    assert!(failed.message.contains("not on this worker"), "{failed}");
    assert_eq!((count.runs.load(Ordering::SeqCst), count.steps.load(Ordering::SeqCst)), (2, 6));
    working.abort();
    engine.close().await;
}

async fn changed(ctx: WorkflowContext, (): ()) -> anyhow::Result<()> {
    ctx.run("before", async { Ok(()) }).await
}

#[tokio::test]
async fn the_result_of_a_run_that_waits_for_a_person_is_an_error_that_says_so() {
    let engine = TestEngine::start().await;
    let first = tokio::spawn(
        engine
            .worker("q")
            .register("w", async |ctx: WorkflowContext, (): ()| {
                ctx.run("after", async { Ok(()) }).await?;
                ctx.sleep(std::time::Duration::from_secs(60)).await
            })
            .run(),
    );
    let run = engine.client().workflow("w", "q", ()).await.unwrap();
    engine.settle().await;
    first.abort();
    let second = tokio::spawn(engine.worker("q").register("w", changed).run());
    engine.advance(std::time::Duration::from_secs(61));

    let told = run.result::<()>().await;

    let Err(Error::RunPaused(paused)) = told else { panic!("{told:?}") };
    assert_eq!(paused.run_id, run.run_id());
    second.abort();
    engine.close().await;
}

/// Fails twice, then says which attempt it was.
async fn look(ctx: WorkflowContext, hook: String) -> anyhow::Result<u32> {
    let step = ctx.step("look").attempts(3);
    let step = if hook.is_empty() { step.kind("browser_action") } else { step.before_retry(hook) };
    step.run(|step| async move {
        match step.attempt() {
            1 | 2 => Err(StepFailure::new("element_not_found", "no such button"))?,
            attempt => Ok(attempt),
        }
    })
    .await
}

#[tokio::test]
async fn a_hook_is_called_before_each_retry_that_asks_for_it_and_before_no_other_attempt() {
    let engine = TestEngine::start().await;
    engine.skip_time();
    let calls = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let noted = calls.clone();
    let worker = engine.worker("pages").before_retry("refresh_page", move |told: BeforeRetry| {
        noted.lock().push((told.step.path().to_owned(), told.step.attempt(), told.failure.code));
        async { Ok(()) }
    });
    let working = tokio::spawn(worker.register("look", look).run());
    let start = |hook: &str| engine.client().start("look").queue("pages").input(hook.to_owned());

    assert_eq!(start("").await.unwrap().result::<u32>().await.unwrap(), 3);
    let called = |attempt| ("look".to_owned(), attempt, "element_not_found".to_owned());
    assert_eq!(std::mem::take(&mut *calls.lock()), [called(2), called(3)], "known by its kind and its code");
    assert_eq!(start("refresh_page").await.unwrap().result::<u32>().await.unwrap(), 3);
    assert_eq!(std::mem::take(&mut *calls.lock()), [called(2), called(3)], "asked for by its name");
    assert_eq!(start("of nobody").await.unwrap().result::<u32>().await.unwrap(), 3);
    assert_eq!(*calls.lock(), [], "a hook that the worker lacks is warned of and passed over");
    working.abort();
    engine.close().await;
}

#[tokio::test]
async fn the_error_of_a_hook_fails_the_attempt() {
    let engine = TestEngine::start().await;
    engine.skip_time();
    let worker = engine.worker("pages").before_retry("refresh_page", |_| async {
        Err(StepFailure::new("BROWSER_GONE", "nothing to refresh").non_retryable())?
    });
    let working = tokio::spawn(worker.register("look", look).run());

    let run = engine.client().start("look").queue("pages").input("refresh_page".to_owned()).await.unwrap();
    let Err(Error::RunFailed(failed)) = run.result::<u32>().await else { panic!("it completed") };

    assert_eq!(failed.code.as_str(), "BROWSER_GONE");
    working.abort();
    engine.close().await;
}
