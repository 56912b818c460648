use std::sync::Arc;

use kagzi::client::RunStatus;
use kagzi::codec::CompressionCodec;
use kagzi::error::Code;
use kagzi::testing::TestEngine;
use kagzi::workflow::{StepFailure, WorkflowFailedEvent};
use kagzi::{Error, RetryPolicy, WorkflowContext};
use tokio::sync::Notify;

use crate::{client, key, key_bytes, work};

const SECRET: &str = "4242-4242";

async fn pay(ctx: WorkflowContext, card: String) -> anyhow::Result<String> {
    let charged = ctx
        .step("charge")
        .retry_policy(RetryPolicy::default().initial_interval(std::time::Duration::ZERO))
        .run(|step| {
            let card = card.clone();
            async move {
                step.heartbeat(&format!("asking for {card}"));
                if step.attempt() == 1 {
                    let failure = StepFailure::new("BUSY", format!("{card} is busy")).details([&card]);
                    return Err(failure.class("transient").into());
                }
                Ok(format!("charged {card}"))
            }
        })
        .await?;
    if card.ends_with('!') {
        return Err(StepFailure::new("DECLINED", format!("{card} was declined")).details([card]).into());
    }
    Ok(charged)
}

/// Everything that the server has of a run, as somebody without the key reads it.
async fn stored(engine: &TestEngine, run_id: &str) -> String {
    let handle = engine.client().handle(run_id);
    let run = handle.describe().await.unwrap();
    let mut all = format!("{:?} ", run.error);
    for payload in [run.input, run.output].into_iter().flatten() {
        all += &format!("{} {} ", payload.content_type, String::from_utf8_lossy(&payload.data));
    }
    for event in handle.events().await.unwrap() {
        let payload = event.payload.unwrap_or_default();
        all += &format!("{} {} ", event.detail, String::from_utf8_lossy(&payload.data));
    }
    all
}

#[tokio::test]
async fn nothing_readable_is_stored_but_codes_and_classes() {
    let engine = TestEngine::start().await;
    work(&engine, key("k1"), |worker| {
        worker.register("pay", pay);
    })
    .await;
    let start = async |card: String| client(&engine).workflow("pay", "q", card).await.unwrap();

    let (good, bad) = (start(SECRET.into()).await, start(format!("{SECRET}!")).await);
    let output = good.result::<String>().await.unwrap();
    let Error::RunFailed(failed) = bad.result::<String>().await.unwrap_err() else { panic!("it failed") };

    assert_eq!(output, format!("charged {SECRET}"));
    assert_eq!((failed.code.as_str(), failed.message), ("DECLINED", format!("{SECRET}! was declined")));
    for run in [&good, &bad] {
        let stored = stored(&engine, run.run_id()).await;
        assert!(!stored.contains("4242") && !stored.contains("charged"), "{stored}");
        assert!(stored.contains("BUSY") && stored.contains("transient"), "{stored}");
        assert!(stored.contains("application/vnd.kagzi.encrypted; key=k1"), "{stored}");
    }
    // Who has the key reads everything, by every way.
    let run = client(&engine).get(bad.run_id()).await.unwrap();
    assert_eq!(run.input.unwrap().data, format!("\"{SECRET}!\""));
    assert_eq!(run.error.unwrap().details.unwrap(), serde_json::json!([format!("{SECRET}!")]));
    let events = bad.events().await.unwrap();
    assert!(events.iter().any(|event| event.detail.to_string().contains("4242-4242! is busy")));
    let listed = client(&engine).runs().page("").await.unwrap().rows;
    assert!(listed.iter().any(|run| run.error.as_ref().is_some_and(|error| error.message.contains(SECRET))));
}

#[tokio::test]
async fn a_repeated_start_is_the_same_run_although_its_bytes_differ() {
    let engine = TestEngine::start().await;
    let start = |card: &str| client(&engine).workflow("pay", "q", card).id("order-42");

    let first = start(SECRET).await.unwrap();
    let again = start(SECRET).await.unwrap();
    let many = client(&engine).start_many(vec![start(SECRET), start("other")]).await;
    let other = start("other").await.err().unwrap();

    assert_eq!((first.run_id(), first.already_existed()), (again.run_id(), false));
    assert!(again.already_existed());
    assert!(many[0].as_ref().is_ok_and(|run| run.run_id() == first.run_id() && run.already_existed()));
    for error in [&other, many[1].as_ref().err().unwrap()] {
        assert_eq!(error.code(), Some(Code::AlreadyExists), "{error}");
    }
}

#[tokio::test]
async fn a_worker_without_the_key_pauses_the_run_and_one_with_it_goes_on() {
    let engine = TestEngine::start().await;
    let stop = work(&engine, key("k2"), |worker| {
        worker.register("pay", pay);
    })
    .await;

    let run = client(&engine).workflow("pay", "q", SECRET).await.unwrap();
    engine.settle().await;
    let paused = run.describe().await.unwrap();
    stop.cancel();
    work(&engine, key("k1"), |worker| {
        worker.register("pay", pay);
    })
    .await;
    run.resume().await.unwrap();

    assert_eq!(paused.status, RunStatus::Paused);
    let expected =
        "the run's input cannot be decoded: the payload is encrypted with key 'k1', and only k2 is known";
    assert!(paused.status_detail.contains(expected), "{}", paused.status_detail);
    assert_eq!(run.result::<String>().await.unwrap(), format!("charged {SECRET}"));
}

#[tokio::test]
async fn a_client_without_the_key_is_told_which_one_it_needs() {
    let engine = TestEngine::start().await;
    work(&engine, key("k1"), |worker| {
        worker.register("pay", pay);
    })
    .await;
    let run = client(&engine).workflow("pay", "q", SECRET).await.unwrap();
    run.finished().await.unwrap();

    let stranger = engine.client().codec(key("k2")).handle(run.run_id());
    let error = stranger.result::<String>().await.unwrap_err().to_string();

    assert!(error.contains("encrypted with key 'k1'"), "{error}");
    let without = engine.client().handle(run.run_id()).result::<String>().await.unwrap_err().to_string();
    assert!(without.contains("application/vnd.kagzi.encrypted; key=k1"), "{without}");
}

#[tokio::test]
async fn keys_rotate_in_the_middle_of_a_run() {
    let engine = TestEngine::start().await;
    let slept = Arc::new(Notify::new());
    let told = slept.clone();
    let two_steps = move |ctx: WorkflowContext, name: String| {
        let told = told.clone();
        async move {
            let first = ctx.run("first", async { Ok(format!("{name} 1")) }).await?;
            told.notify_one();
            ctx.sleep(std::time::Duration::from_secs(3600)).await?;
            ctx.run("second", async move { Ok(format!("{first} 2")) }).await
        }
    };
    let before = two_steps.clone();
    let stop = work(&engine, key("k1"), |worker| {
        worker.register("two", before);
    })
    .await;
    let run = client(&engine).workflow("two", "q", "run").await.unwrap();
    slept.notified().await;
    engine.settle().await;
    stop.cancel();
    let rotated = || key("k2").with_old_key("k1", key_bytes("k1")).unwrap();
    work(&engine, rotated(), |worker| {
        worker.register("two", two_steps);
    })
    .await;
    engine.advance(std::time::Duration::from_secs(3600));

    let output = engine.client().codec(rotated()).handle(run.run_id()).result::<String>().await.unwrap();

    assert_eq!(output, "run 1 2");
    let stored = engine.client().get(run.run_id()).await.unwrap();
    assert_eq!(stored.input.unwrap().content_type, "application/vnd.kagzi.encrypted; key=k1");
    assert_eq!(stored.output.unwrap().content_type, "application/vnd.kagzi.encrypted; key=k2");
}

#[tokio::test]
async fn a_failure_handler_reads_the_story_of_an_encrypted_run() {
    let engine = TestEngine::start().await;
    let note = |_: WorkflowContext, event: WorkflowFailedEvent| async move { Ok(event) };
    work(&engine, key("k1"), |worker| {
        worker.register("pay", pay).register("note", note);
    })
    .await;

    let start = client(&engine).workflow("pay", "q", format!("{SECRET}!")).on_failure("note");
    start.await.unwrap().finished().await.unwrap();
    engine.settle().await;

    let handler = client(&engine).runs().workflow_type("note").page("").await.unwrap().rows.remove(0).run_id;
    let event = client(&engine).handle(&handler).result::<WorkflowFailedEvent>().await.unwrap();
    assert_eq!((event.error.as_str(), event.error_code.as_str()), ("4242-4242! was declined", "DECLINED"));
    assert_eq!(event.input::<String>().unwrap(), "4242-4242!");
    assert_eq!(event.original_content_type, "application/json");
    let stored = stored(&engine, &handler).await;
    assert!(!stored.contains("4242"), "{stored}");
}

#[tokio::test]
async fn compression_and_encryption_form_a_chain() {
    let engine = TestEngine::start().await;
    let mut worker = engine.worker("q").codec(CompressionCodec).codec(key("k1")).build().await.unwrap();
    worker.register("echo", |_: WorkflowContext, input: String| async move { Ok(input) });
    tokio::spawn(worker.run());
    let client = engine.client().codec(CompressionCodec).codec(key("k1"));
    let long = "tea ".repeat(10_000);

    let run = client.workflow("echo", "q", &long).await.unwrap();

    assert_eq!(run.result::<String>().await.unwrap(), long);
    let stored = engine.client().get(run.run_id()).await.unwrap().input.unwrap();
    assert!(stored.data.len() < 1000 && stored.content_type.ends_with("key=k1"), "{stored:?}");
}
