use kagzi::codec::CompressionCodec;
use kagzi::testing::TestEngine;
use kagzi::workflow::StepError;
use kagzi::{Error, WorkflowContext};

const LIMIT: usize = 2 * 1024 * 1024;

/// As JSON two bytes longer.
fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

async fn careless(ctx: WorkflowContext, bytes: usize) -> anyhow::Result<String> {
    let large = ctx.step("large").run(move |_| async move { Ok(text(bytes)) }).await;
    let Err(error) = large else { return Ok("it fitted".into()) };
    let error = error.downcast::<StepError>()?;
    assert!(error.is_non_retryable());
    let goes_on = ctx.run("reference", async { Ok("s3://bucket/large".to_owned()) }).await?;
    Ok(format!("{} after {} attempt(s): {goes_on}", error.code, error.attempts))
}

#[tokio::test]
async fn a_result_over_the_limit_fails_its_step_once_and_the_run_can_go_on() {
    let engine = TestEngine::start().await;
    engine
        .work("q", |worker| {
            worker.register("careless", careless);
        })
        .await;
    let result = async |bytes: usize| {
        let run = engine.client().workflow("careless", "q", bytes).await.unwrap();
        run.result::<String>().await.unwrap()
    };

    assert_eq!(result(LIMIT - 2).await, "it fitted");
    assert_eq!(result(LIMIT - 1).await, "PAYLOAD_TOO_LARGE after 1 attempt(s): s3://bucket/large");
}

#[tokio::test]
async fn an_output_over_the_limit_fails_the_run_by_name_and_size() {
    let engine = TestEngine::start().await;
    engine
        .work("q", |worker| {
            worker.register("endless", |_: WorkflowContext, (): ()| async { Ok(text(LIMIT)) });
        })
        .await;

    let run = engine.client().workflow("endless", "q", ()).await.unwrap();
    let Error::RunFailed(failed) = run.result::<String>().await.unwrap_err() else { panic!("it failed") };

    assert_eq!(failed.code, "PAYLOAD_TOO_LARGE");
    let expected = format!("the run's output exceeds maximum size of {LIMIT} bytes ({} bytes)", LIMIT + 2);
    assert!(failed.message.contains(&expected), "{}", failed.message);
}

#[tokio::test]
async fn an_input_over_the_limit_is_refused_and_no_run_is_started() {
    let engine = TestEngine::start().await;

    let refused = engine.client().workflow("any", "q", text(LIMIT)).id("large").await.err().unwrap();

    let expected = format!("input exceeds maximum size of {LIMIT} bytes ({} bytes)", LIMIT + 2);
    assert!(refused.to_string().contains(&expected), "{refused}");
    assert!(engine.client().get_by_id("large").await.is_err());
}

#[tokio::test]
async fn the_limit_is_for_what_is_stored_so_a_compressed_payload_may_be_longer() {
    let engine = TestEngine::start().await;
    let mut worker = engine.worker("q").codec(CompressionCodec).build().await.unwrap();
    worker.register("echo", |_: WorkflowContext, input: String| async move { Ok(input) });
    tokio::spawn(worker.run());
    let client = engine.client().codec(CompressionCodec);

    let run = client.workflow("echo", "q", text(3 * LIMIT)).await.unwrap();

    assert_eq!(run.result::<String>().await.unwrap().len(), 3 * LIMIT);
    let stored = engine.client().get(run.run_id()).await.unwrap();
    assert!(stored.input.unwrap().data.len() < LIMIT / 10);
}
