//! Starts and waits share a stream, and what goes wrong with one does not disturb the others.

use futures_util::future::join_all;
use kagzi::client::RunHandle;
use kagzi::testing::TestEngine;
use kagzi::{Error, WorkflowContext};

async fn echo(_: WorkflowContext, text: String) -> anyhow::Result<String> {
    Ok(text)
}

async fn engine() -> TestEngine {
    let engine = TestEngine::start().await;
    engine
        .work("echoes", |worker| {
            worker.register("echo", echo);
        })
        .await;
    engine
}

#[tokio::test]
async fn a_start_that_is_refused_does_not_disturb_those_asked_with_it() {
    let engine = engine().await;
    let start = async |number: usize| {
        let queue = if number == 3 { "" } else { "echoes" };
        let run = engine.client().workflow("echo", queue, format!("run {number}")).await?;
        run.result::<String>().await
    };

    let answers = join_all((0..10).map(start)).await;

    for (number, answer) in answers.into_iter().enumerate() {
        match answer {
            Ok(text) => assert_eq!(text, format!("run {number}")),
            Err(error) => {
                assert_eq!(number, 3, "{error}");
                assert!(
                    matches!(&error, Error::Refused(_)) && error.to_string().contains("task_queue"),
                    "{error}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_large_start_and_a_large_result_come_through_beside_small_ones() {
    let engine = engine().await;
    let texts: Vec<String> = [10, 100_000, 10, 1_000_000, 10].iter().map(|len| "x".repeat(*len)).collect();

    let answers = join_all(texts.iter().map(async |text| {
        let run = engine.client().workflow("echo", "echoes", text).await.unwrap();
        run.result::<String>().await.unwrap()
    }))
    .await;

    assert_eq!(answers, texts);
}

async fn listen(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
    ctx.signal("word").await
}

/// Runs that wait for a word.
async fn listening(count: usize) -> (TestEngine, Vec<RunHandle>) {
    let engine = TestEngine::start().await;
    engine
        .work("ears", |worker| {
            worker.register("listen", listen);
        })
        .await;
    let mut runs = Vec::new();
    for _ in 0..count {
        runs.push(engine.client().workflow("listen", "ears", ()).await.unwrap());
    }
    engine.settle().await;
    (engine, runs)
}

#[tokio::test]
async fn a_signal_that_is_refused_does_not_disturb_those_sent_with_it() {
    let (_engine, runs) = listening(10).await;
    runs[3].cancel("no longer wanted").await.unwrap();

    let told = join_all(runs.iter().enumerate().map(|(n, run)| {
        let word = format!("word {n}");
        async move { run.signal("word", &word).await }
    }));
    for (n, told) in told.await.into_iter().enumerate() {
        match told {
            Ok(told) => assert!(n != 3 && !told.already, "{n}"),
            Err(error) => assert!(n == 3 && matches!(&error, Error::Refused(_)), "{n}: {error}"),
        }
    }

    for (n, run) in runs.iter().enumerate().filter(|(n, _)| *n != 3) {
        assert_eq!(run.result::<String>().await.unwrap(), format!("word {n}"));
    }
}

#[tokio::test]
async fn a_large_signal_comes_through_beside_small_ones() {
    let (_engine, runs) = listening(5).await;
    let words: Vec<String> = [10, 100_000, 10, 1_000_000, 10].iter().map(|len| "x".repeat(*len)).collect();

    let told = runs.iter().zip(&words).map(|(run, word)| async move { run.signal("word", word).await });
    assert!(join_all(told).await.iter().all(Result::is_ok));

    for (run, word) in runs.iter().zip(&words) {
        assert_eq!(run.result::<String>().await.unwrap(), *word);
    }
}
