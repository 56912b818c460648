//! Asking a run, promises, published values and signals between runs, as users write them.

use std::time::Duration;

use kagzi::client::{Reason, RunHandle, RunStatus};
use kagzi::error::{Code, Error};
use kagzi::testing::{Crashes, TestEngine, crash_while_signalled};
use kagzi::workflow::{Finality, StepError};
use kagzi::{Client, WorkflowContext};

const DAY: Duration = Duration::from_secs(86_400);
const MINUTE: Duration = Duration::from_secs(60);

async fn cart(ctx: WorkflowContext, size: usize) -> anyhow::Result<Vec<String>> {
    let requests = ctx.requests::<String, usize>("add-item");
    let mut items = Vec::new();
    while items.len() < size {
        let Some(request) = requests.next().await? else { break };
        if request.input.is_empty() {
            request.reject_as("NAMELESS", "an item has a name").await?;
            continue;
        }
        items.push(request.input.clone());
        ctx.set_value("items", &items)?;
        let count = items.len();
        // Between the request and its answer the code may do anything.
        ctx.run("weigh", async { Ok(()) }).await?;
        request.reply(&count).await?;
    }
    Ok(items)
}

async fn payment(ctx: WorkflowContext, heartbeat: Option<u64>) -> anyhow::Result<String> {
    let promise = ctx.promise::<u32>("payment").timeout(DAY);
    let promise = match heartbeat {
        Some(seconds) => promise.heartbeat(Duration::from_secs(seconds)).await?,
        None => promise.await?,
    };
    ctx.set_value("token", promise.token())?;
    ctx.run("charge", async { Ok(()) }).await?;
    let twice = ctx.promise::<u32>("payment").await;
    anyhow::ensure!(twice.is_err(), "names are unique");
    match promise.await {
        Ok(cents) => Ok(format!("paid {cents}")),
        Err(error) => match error.downcast_ref::<StepError>() {
            Some(failed) => {
                assert_eq!(failed.finality, Finality::Rejected);
                Ok(failed.code.clone())
            }
            None => Ok("another type".to_owned()),
        },
    }
}

async fn teller(ctx: WorkflowContext, other: String) -> anyhow::Result<String> {
    for word in ["one", "two"] {
        ctx.signal_run(&other, "word", word).await?;
    }
    let own = ctx.run_id().to_owned();
    ctx.signal_run(&own, "own", "myself").await?;
    ctx.signal("own").await
}

async fn listener(ctx: WorkflowContext, _: ()) -> anyhow::Result<Vec<String>> {
    let words = ctx.signals::<String>("word");
    let mut heard = vec![words.next().await?.unwrap_or_default(), words.next().await?.unwrap_or_default()];
    ctx.signal::<()>("enough").await?;
    while let Some(more) = words.last_call().await? {
        heard.push(more);
    }
    Ok(heard)
}

async fn counter(ctx: WorkflowContext, steps: u64) -> anyhow::Result<()> {
    for step in 0..steps {
        for noise in 0..100 {
            ctx.set_value("noise", &noise)?;
        }
        ctx.set_value("progress", &step)?;
        ctx.set_value("same", "always")?;
        ctx.run("work", async { Ok(()) }).await?;
    }
    ctx.signal::<()>("go").await?;
    ctx.set_value("progress", "done")
}

async fn engine() -> TestEngine {
    let engine = TestEngine::start().await;
    engine
        .work("q", |worker| {
            worker.register("cart", cart).register("payment", payment).register("teller", teller);
            worker.register("listener", listener).register("counter", counter);
        })
        .await;
    engine
}

async fn started(engine: &TestEngine, workflow: &str, input: impl serde::Serialize) -> RunHandle {
    let run = engine.client().workflow(workflow, "q", input).await.unwrap();
    engine.settle().await;
    run
}

fn refused(error: &Error) -> (Code, &str) {
    match error {
        Error::Refused(refusal) => (refusal.code, &refusal.reason),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_run_answers_what_it_is_asked_and_a_repeat_gets_the_same_answer() {
    let engine = engine().await;
    let run = started(&engine, "cart", 2).await;
    let why = run.explain().await.unwrap().sentence;
    assert!(why.contains(&format!("kagzi run ask {} add-item", run.run_id())), "{why}");

    assert_eq!(run.ask::<_, usize>("add-item", "tea").id("click-1").await.unwrap(), 1);
    assert_eq!(run.ask::<_, usize>("add-item", "other").id("click-1").await.unwrap(), 1);
    let nameless = run.ask::<_, usize>("add-item", "").await.unwrap_err();
    let Error::Rejected(rejected) = &nameless else { panic!("{nameless}") };
    assert_eq!((&*rejected.code, &*rejected.message), ("NAMELESS", "an item has a name"));
    let typed = run.ask::<_, usize>("add-item", &7).await.unwrap_err();
    assert!(matches!(&typed, Error::Rejected(rejected) if rejected.code == "INVALID_REQUEST"), "{typed}");
    assert_eq!(run.ask::<_, usize>("add-item", "milk").id("click / 2").await.unwrap(), 2);

    assert_eq!(run.result::<Vec<String>>().await.unwrap(), ["tea", "milk"]);
    assert_eq!(run.ask::<_, usize>("add-item", "tea").id("click-1").await.unwrap(), 1, "after the end");
    let late = run.ask::<_, usize>("add-item", "late").await.unwrap_err();
    assert_eq!(refused(&late), (Code::FailedPrecondition, "RUN_ENDED"));
}

#[tokio::test]
async fn a_request_outlives_its_asker_and_a_run_that_ends_without_an_answer_says_so() {
    let engine = TestEngine::start().await;
    let run = engine.client().workflow("cart", "q", 1).await.unwrap();

    let short = Duration::from_millis(50);
    let impatient = run.ask::<_, usize>("add-item", "tea").id("click-1").timeout(short).await.unwrap_err();
    assert!(matches!(impatient, Error::TimedOut { .. }), "{impatient}");
    engine
        .work("q", |worker| {
            worker.register("cart", cart);
        })
        .await;
    assert_eq!(run.ask::<_, usize>("add-item", "tea").id("click-1").await.unwrap(), 1);

    let other = engine.client().workflow("never", "q", ()).await.unwrap();
    let asked = tokio::spawn({
        let other = other.clone();
        async move { other.ask::<_, usize>("add-item", "tea").await }
    });
    while other.history().page("").await.unwrap().rows.len() < 2 {
        tokio::task::yield_now().await;
    }
    other.cancel("no longer wanted").await.unwrap();
    let ended = asked.await.unwrap().unwrap_err();
    assert_eq!(refused(&ended), (Code::FailedPrecondition, "RUN_ENDED_UNANSWERED"));
    assert!(ended.to_string().contains("CANCELLED"), "{ended}");
}

#[tokio::test]
async fn whoever_has_the_token_completes_the_promise_once_and_nothing_else() {
    let engine = engine().await;
    let run = started(&engine, "payment", None::<u64>).await;
    let waiting = run.describe().await.unwrap();
    assert_eq!(waiting.reason, Some(Reason::Signal));
    let why = run.explain().await.unwrap().sentence;
    assert!(why.contains("it waits for promise 'payment'"), "{why}");
    assert!(why.contains(&format!("kagzi promise complete --run {} payment", run.run_id())), "{why}");
    let token = run.value::<String>("token").await.unwrap().unwrap().value;

    let client: Client = engine.client();
    let other = started(&engine, "payment", None::<u64>).await;
    let other_token = other.value::<String>("token").await.unwrap().unwrap().value;
    assert_ne!(token, other_token);
    let forged = token.chars().map(|c| if c == 'A' { 'B' } else { 'A' }).collect::<String>();
    let refusal = client.promise(forged).complete(&7).await.unwrap_err();
    assert_eq!(refused(&refusal).0, Code::InvalidArgument);
    let elsewhere = engine.client().namespace("elsewhere").promise(&token).complete(&7).await.unwrap_err();
    assert_eq!(refused(&elsewhere), (Code::NotFound, "RUN_NOT_FOUND"));
    let unknown = run.promise("paymnt").complete(&7).await.unwrap_err();
    assert_eq!(refused(&unknown), (Code::NotFound, "PROMISE_NOT_FOUND"));
    let plain = run.signal("~promise/payment", &7).await.unwrap_err();
    assert_eq!(refused(&plain).0, Code::InvalidArgument);

    let completed = client.promise(&token).complete(&700).await.unwrap();
    assert!(!completed.already);
    assert_eq!((&*completed.run_id, &*completed.name), (run.run_id(), "payment"));
    assert!(client.promise(&token).fail("LATE", "too late").await.unwrap().already);
    assert_eq!(run.result::<String>().await.unwrap(), "paid 700");
    assert!(client.promise(&token).complete(&1).await.unwrap().already, "also after the end");
    let secret = run.events().await.unwrap();
    assert!(secret.iter().any(|event| event.kind == "promise_made"));
    assert!(!secret.iter().any(|event| event.kind == "promise_made" && event.payload.is_some()));

    assert!(!other.promise("payment").fail("CARD_DECLINED", "no money").await.unwrap().already);
    assert_eq!(other.result::<String>().await.unwrap(), "CARD_DECLINED");
}

#[tokio::test]
async fn a_promise_of_another_type_is_an_error_that_the_code_can_catch() {
    let engine = engine().await;
    let run = started(&engine, "payment", None::<u64>).await;

    run.promise("payment").complete("no number").await.unwrap();

    assert_eq!(run.result::<String>().await.unwrap(), "another type");
}

#[tokio::test]
async fn a_promise_is_over_in_its_time_which_counts_from_when_it_was_made() {
    let engine = engine().await;
    let run = started(&engine, "payment", None::<u64>).await;

    engine.advance(DAY - Duration::from_millis(1));
    engine.settle().await;
    assert_eq!(run.describe().await.unwrap().status, RunStatus::Sleeping);
    engine.advance(Duration::from_millis(2));

    assert_eq!(run.result::<String>().await.unwrap(), "PROMISE_TIMED_OUT");
}

#[tokio::test]
async fn a_promise_whose_signs_of_life_stop_has_an_error_of_its_own() {
    let engine = engine().await;
    let run = started(&engine, "payment", Some(60)).await;
    let promise = run.promise("payment");

    for _ in 0..5 {
        engine.advance(MINUTE - Duration::from_secs(1));
        promise.beat().await.unwrap();
        engine.settle().await;
        assert_eq!(run.describe().await.unwrap().status, RunStatus::Sleeping);
    }
    let beats = run.events().await.unwrap();
    let beats = beats.iter().filter(|event| event.kind == "promise_beat").count();
    assert!(beats <= 5, "{beats}");
    engine.advance(MINUTE - Duration::from_secs(1));
    engine.settle().await;
    assert_eq!(run.describe().await.unwrap().status, RunStatus::Sleeping, "not before its time");
    engine.advance(MINUTE);

    assert_eq!(run.result::<String>().await.unwrap(), "PROMISE_SILENT");
}

#[tokio::test]
async fn values_are_read_without_a_worker_and_only_changes_are_written() {
    let engine = engine().await;
    let run = started(&engine, "counter", 5).await;

    let progress = run.value::<u64>("progress").await.unwrap().unwrap();
    assert_eq!((progress.value, progress.status), (4, RunStatus::Sleeping));
    assert_eq!(run.value::<u64>("noise").await.unwrap().unwrap().value, 99);
    assert!(run.value::<u64>("never").await.unwrap().is_none());
    let set =
        |events: &[kagzi::history::Event]| events.iter().filter(|event| event.kind == "value_set").count();
    // Five of "progress", five of "noise", one of "same".
    assert_eq!(set(&run.events().await.unwrap()), 11);

    run.signal("go", &()).await.unwrap();
    run.result::<()>().await.unwrap();
    let done = run.value::<String>("progress").await.unwrap().unwrap();
    assert_eq!((&*done.value, done.status), ("done", RunStatus::Completed));
    assert_eq!(set(&run.events().await.unwrap()), 12, "a replay sets nothing twice");
    let missing = engine.client().handle("0198c5f2-5b7e-7a10-8f59-3d2a6f3f1c55").value::<u64>("x").await;
    assert_eq!(refused(&missing.unwrap_err()), (Code::NotFound, "RUN_NOT_FOUND"));
}

#[tokio::test]
async fn a_workflow_tells_other_runs_and_itself_something() {
    let engine = engine().await;
    let listener = started(&engine, "listener", ()).await;

    let teller = started(&engine, "teller", listener.run_id()).await;
    assert_eq!(teller.result::<String>().await.unwrap(), "myself");
    listener.signal("enough", &()).await.unwrap();
    assert_eq!(listener.result::<Vec<String>>().await.unwrap(), ["one", "two"]);

    let late = started(&engine, "teller", listener.run_id()).await;
    let failed = late.result::<String>().await.unwrap_err();
    assert!(matches!(&failed, Error::RunFailed(failed) if failed.code == "RUN_ENDED"), "{failed}");
}

#[tokio::test]
async fn names_that_begin_with_the_engines_sign_are_refused() {
    let engine = TestEngine::start().await;
    engine
        .work("q", |worker| {
            worker.register("odd", |ctx: WorkflowContext, _: ()| async move {
                ctx.run("~reply/mine", async { Ok(()) }).await
            });
        })
        .await;

    let run = engine.client().workflow("odd", "q", ()).await.unwrap();
    let failed = run.result::<()>().await.unwrap_err();
    assert!(failed.to_string().contains("must not begin with '~'"), "{failed}");
}

/// Answers requests, tells itself what it was asked, and remembers the token of its promise.
async fn diligent(ctx: WorkflowContext, _: ()) -> anyhow::Result<Vec<u64>> {
    let requests = ctx.requests::<u64, u64>("add");
    let own = ctx.run_id().to_owned();
    let promise = ctx.promise::<u64>("later").await?;
    let token = promise.token().to_owned();
    let remembered: String = ctx.run("remember", async move { Ok(token) }).await?;
    let mut taken = Vec::new();
    for _ in 0..4 {
        let Some(request) = requests.next().await? else { break };
        let number = request.input;
        ctx.signal_run(&own, "echo", &number).await?;
        ctx.set_value("taken", &taken)?;
        request.reply(&(number * 10)).await?;
        let echo: u64 = ctx.signal("echo").await?;
        anyhow::ensure!(echo == number, "told {number}, heard {echo}");
        taken.push(echo);
        anyhow::ensure!(remembered == promise.token(), "every replay has the same token");
    }
    let twice: Option<u64> = ctx.signals("echo").last_call().await?;
    anyhow::ensure!(twice.is_none(), "told twice: {twice:?}");
    Ok(taken)
}

#[tokio::test]
async fn nothing_is_asked_told_or_made_twice_although_workers_die_after_every_report() {
    for crashes in [Crashes::Never, Crashes::AfterEveryReport] {
        let told = (0..4_u64).map(|number| ("add".to_owned(), number.into())).collect();
        let register = |worker: &mut kagzi::Worker| {
            worker.register("diligent", diligent);
        };

        let trial = crash_while_signalled(register, "diligent", (), crashes, told).await;

        trial.history.assert_completed();
        assert_eq!(trial.history.run().output::<Vec<u64>>().unwrap(), [0, 1, 2, 3]);
    }
}

/// Answers one request per generation, and makes a promise of the same name in each.
async fn endless(ctx: WorkflowContext, generation: u32) -> anyhow::Result<String> {
    let promise = ctx.promise::<u32>("payment").await?;
    ctx.set_value("token", promise.token())?;
    ctx.set_value("generation", &generation)?;
    let Some(request) = ctx.requests::<String, String>("greet").next().await? else {
        return Ok("closed".into());
    };
    let answer = format!("{} {generation}", request.input);
    request.reply(&answer).await?;
    let paid = promise.await?;
    if generation < 3 { ctx.continue_as_new(&(generation + 1)) } else { Ok(format!("paid {paid}")) }
}

#[tokio::test]
async fn every_generation_answers_promises_and_publishes_anew() {
    let engine = TestEngine::start().await;
    engine
        .work("q", |worker| {
            worker.register("endless", endless);
        })
        .await;
    let run = engine.client().workflow("endless", "q", 1).await.unwrap();

    for generation in 1..=3 {
        let answer: String = run.ask("greet", "hello").timeout(MINUTE).await.unwrap();
        assert_eq!(answer, format!("hello {generation}"));
        assert_eq!(run.value::<u32>("generation").await.unwrap().unwrap().value, generation);
        let token: String = run.value("token").await.unwrap().unwrap().value;
        engine.client().promise(&token).complete(&generation).await.unwrap();
        engine.settle().await;
    }

    assert_eq!(run.result::<String>().await.unwrap(), "paid 3");
}
