//! Waiting for somebody's word, as users write it.

use std::sync::Arc;
use std::time::Duration;

use kagzi::client::{Reason, RunHandle};
use kagzi::testing::{Crashes, TestEngine, crash_while_signalled};
use kagzi::workflow::{Finality, StepError};
use kagzi::{Error, WorkflowContext};
use tokio::sync::Notify;

const DAY: Duration = Duration::from_secs(86_400);

async fn approval(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
    let by: String = ctx.signal("approved").await?;
    ctx.run("ship", async move { Ok(format!("shipped for {by}")) }).await
}

async fn patient(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
    let answer: Option<String> = ctx.signal("approved").timeout(DAY).await?;
    Ok(answer.unwrap_or_else(|| "nobody".to_owned()))
}

async fn cart(ctx: WorkflowContext, _: ()) -> anyhow::Result<Vec<String>> {
    let items = ctx.signals::<String>("item");
    let mut cart = vec![items.next().await?.unwrap_or_default()];
    ctx.signal::<()>("checkout").await?;
    while let Some(item) = items.last_call().await? {
        cart.push(item);
    }
    ctx.signal::<()>("paid").await?;
    Ok(cart)
}

async fn strict(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
    let number: anyhow::Result<u32> = ctx.signal("number").await;
    match number {
        Ok(number) => Ok(number.to_string()),
        Err(error) => match error.downcast_ref::<StepError>() {
            Some(step) if step.finality == Finality::Rejected => {
                Ok(format!("{}: {}", step.code, step.message))
            }
            _ => Ok(format!("{error}").split(':').next().unwrap_or_default().to_owned()),
        },
    }
}

async fn raced(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
    kagzi::select! {
        yes = async { ctx.signal::<String>("yes").await } => Ok(format!("yes {}", yes?)),
        no = async { ctx.signal::<String>("no").await } => Ok(format!("no {}", no?)),
        late = ctx.sleep(DAY) => { late?; Ok("late".to_owned()) }
    }
}

async fn engine() -> TestEngine {
    let engine = TestEngine::start().await;
    engine
        .work("q", |worker| {
            worker.register("approval", approval).register("patient", patient).register("cart", cart);
            worker.register("strict", strict).register("raced", raced);
        })
        .await;
    engine
}

async fn started(engine: &TestEngine, workflow: &str) -> RunHandle {
    let run = engine.client().workflow(workflow, "q", ()).await.unwrap();
    engine.settle().await;
    run
}

#[tokio::test]
async fn a_run_waits_for_a_signal_without_a_worker_and_says_for_what() {
    let engine = engine().await;
    let run = started(&engine, "approval").await;

    let waiting = run.describe().await.unwrap();
    assert_eq!(waiting.reason, Some(Reason::Signal));
    assert_eq!(waiting.worker_id, None, "nobody is held meanwhile");
    let why = run.explain().await.unwrap();
    assert!(why.sentence.contains("it waits for a signal on 'approved'"), "{}", why.sentence);
    assert!(
        why.sentence.contains(&format!("kagzi run signal {} approved", run.run_id())),
        "{}",
        why.sentence
    );

    let sent = run.signal("approved", "ada").id("one").await.unwrap();
    assert!(!sent.already);
    assert_eq!(run.result::<String>().await.unwrap(), "shipped for ada");
    assert!(
        run.signal("approved", "bob").id("one").await.unwrap().already,
        "told before, also after the end"
    );
    let ended = run.signal("approved", "bob").id("two").await.unwrap_err();
    assert!(matches!(&ended, Error::Refused { .. }), "{ended}");
}

#[tokio::test]
async fn a_signal_may_come_before_anybody_waits_and_before_a_worker_is_there() {
    let engine = TestEngine::start().await;
    let run = engine.client().workflow("approval", "q", ()).await.unwrap();
    run.signal("approved", "ada").await.unwrap();

    engine
        .work("q", |worker| {
            worker.register("approval", approval);
        })
        .await;

    assert_eq!(run.result::<String>().await.unwrap(), "shipped for ada");
}

#[tokio::test]
async fn a_wait_ends_by_itself_when_its_time_has_come_and_not_before() {
    let engine = engine().await;
    let run = started(&engine, "patient").await;

    engine.advance(DAY - Duration::from_millis(1));
    engine.settle().await;
    assert_eq!(run.describe().await.unwrap().reason, Some(Reason::Signal));
    engine.advance(Duration::from_millis(1));

    assert_eq!(run.result::<String>().await.unwrap(), "nobody");
}

#[tokio::test]
async fn a_channel_is_read_to_its_end_and_then_refuses() {
    let engine = engine().await;
    let run = started(&engine, "cart").await;
    for item in ["tea", "milk", "cups"] {
        run.signal("item", item).id(item).await.unwrap();
        run.signal("item", item).id(item).await.unwrap();
    }
    run.signal("checkout", &()).await.unwrap();
    engine.settle().await;

    // The run goes on, and so do its other channels.
    let late = run.signal("item", "sugar").id("sugar").await.unwrap_err();
    assert!(late.to_string().contains("'item'"), "{late}");
    assert!(run.signal("item", "tea").id("tea").await.unwrap().already, "told, and taken");
    run.signal("paid", &()).await.unwrap();
    assert_eq!(run.result::<Vec<String>>().await.unwrap(), ["tea", "milk", "cups"]);
}

#[tokio::test]
async fn what_cannot_be_decoded_and_what_was_declined_are_errors_that_the_code_can_catch() {
    let engine = engine().await;
    let (text, failed) = (started(&engine, "strict").await, started(&engine, "strict").await);

    text.signal("number", "seven").await.unwrap();
    failed.signal_failure("number", "DECLINED", "ask again").await.unwrap();

    assert_eq!(text.result::<String>().await.unwrap(), "the signal is of another type");
    assert_eq!(failed.result::<String>().await.unwrap(), "DECLINED: ask again");
}

#[tokio::test]
async fn a_race_of_signals_and_time_has_the_winner_that_came_first() {
    let engine = engine().await;
    let (no, late) = (started(&engine, "raced").await, started(&engine, "raced").await);

    no.signal("no", "bob").await.unwrap();
    assert_eq!(no.result::<String>().await.unwrap(), "no bob");
    engine.advance(DAY);
    assert_eq!(late.result::<String>().await.unwrap(), "late");
}

#[tokio::test]
async fn a_signal_reaches_a_run_that_another_step_keeps_on_its_worker() {
    let engine = TestEngine::start().await;
    let (began, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let busy = {
        let (began, go) = (began.clone(), go.clone());
        move |ctx: WorkflowContext, ()| {
            let (began, go) = (began.clone(), go.clone());
            async move {
                let long = ctx.run("long", async move {
                    began.notify_one();
                    go.notified().await;
                    Ok(1)
                });
                let told = async {
                    let word: String = ctx.signal("word").await?;
                    ctx.run("after", async move { Ok(word) }).await
                };
                let (long, word): (anyhow::Result<i32>, anyhow::Result<String>) = tokio::join!(long, told);
                Ok::<_, anyhow::Error>(format!("{} {}", long?, word?))
            }
        }
    };
    engine
        .work("q", |worker| {
            worker.register("busy", busy);
        })
        .await;
    let run = engine.client().workflow("busy", "q", ()).await.unwrap();
    began.notified().await;

    run.signal("word", "hello").await.unwrap();
    // The step after the wait is recorded while the long one still runs, by a hint: without one the wait
    // looks again only after ten seconds.
    let after = || async { run.attempt("after", 0).await.is_ok_and(|attempt| attempt.finished_at.is_some()) };
    let recorded = async {
        while !after().await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), recorded).await.expect("the hint was heard");
    go.notify_one();

    assert_eq!(run.result::<String>().await.unwrap(), "1 hello");
}

/// Takes numbers until one of them says how many there are, and works between them.
async fn tally(ctx: WorkflowContext, _: ()) -> anyhow::Result<Vec<u64>> {
    let numbers = ctx.signals::<u64>("number");
    let mut taken = Vec::new();
    for round in 0..12_u64 {
        let (number, slept) = tokio::join!(numbers.next(), ctx.sleep(Duration::from_millis(round % 3)));
        slept?;
        let number = number?.unwrap_or_default();
        taken.push(ctx.run("noted", async move { Ok(number) }).await?);
    }
    Ok(taken)
}

#[tokio::test]
async fn every_number_is_taken_once_and_in_order_although_workers_die_after_every_report() {
    for crashes in [Crashes::Never, Crashes::AfterEveryReport] {
        let told = (0..12_u64).map(|number| ("number".to_owned(), number.into())).collect();
        let register = |worker: &mut kagzi::Worker| {
            worker.register("tally", tally);
        };

        let trial = crash_while_signalled(register, "tally", (), crashes, told).await;

        trial.history.assert_completed();
        let in_order: Vec<u64> = (0..12).collect();
        assert_eq!(trial.history.run().output::<Vec<u64>>().unwrap(), in_order);
    }
}

#[tokio::test]
async fn a_start_tells_the_run_that_is_there_or_the_new_one() {
    let engine = engine().await;
    let cart = |item: &str| engine.client().workflow("cart", "q", ()).id("cart-1").signal("item", item);

    let first = cart("tea").await.unwrap();
    engine.settle().await;
    let second = cart("milk").await.unwrap();
    assert!(!first.already_existed() && second.already_existed());
    assert_eq!(first.run_id(), second.run_id());
    let again =
        |()| engine.client().workflow("cart", "q", ()).id("cart-1").signal_once("item", "one", "cups");
    again(()).await.unwrap();
    again(()).await.unwrap();

    first.signal("checkout", &()).await.unwrap();
    first.signal("paid", &()).await.unwrap();
    assert_eq!(first.result::<Vec<String>>().await.unwrap(), ["tea", "milk", "cups"]);
    let late = cart("late").await.err().unwrap();
    assert!(late.to_string().contains("ended"), "{late}");
    let refused = engine.client().workflow("cart", "q", ()).signal("~own", &1).await.err().unwrap();
    assert!(refused.to_string().contains("engine's own"), "{refused}");
}
