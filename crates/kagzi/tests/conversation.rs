//! Starts and waits share a stream, and what goes wrong with one does not disturb the others.

use futures_util::future::join_all;
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
