//! Labels through the SDK: at the start, from the workflow, over a replay.

use std::time::Duration;

use kagzi::WorkflowContext;
use kagzi::testing::{TestEngine, crash_everywhere};

async fn order(ctx: WorkflowContext, _: ()) -> anyhow::Result<()> {
    ctx.set_label("stage", "charged").await?;
    ctx.sleep(Duration::from_secs(3600)).await?;
    ctx.set_label("stage", "shipped").await?;
    ctx.set_label("carrier", "").await?;
    Ok(())
}

#[tokio::test]
async fn a_replay_sets_no_label_twice_and_the_last_write_counts() {
    let engine = TestEngine::start().await;
    engine
        .work("orders", |worker| {
            worker.register("order", order);
        })
        .await;
    engine.skip_time();

    let run = engine.client().workflow("order", "orders", ()).label("tenant", "acme").await.unwrap();
    run.result::<()>().await.unwrap();

    let history = engine.history(run.run_id()).await;
    let mut labels: Vec<_> = history.run().labels.clone().into_iter().collect();
    labels.sort();
    let expected = [("carrier", ""), ("stage", "shipped"), ("tenant", "acme")];
    assert_eq!(labels, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let set = history.events().iter().filter(|event| event.kind == "label_set").count();
    assert_eq!(set, 3, "{history}");
    engine.close().await;
}

#[tokio::test]
async fn a_workflow_that_labels_ends_the_same_wherever_its_worker_dies() {
    let report = crash_everywhere(
        |worker| {
            worker.register("order", order);
        },
        "order",
        (),
    )
    .await;

    assert!(report.crash_points() >= 6, "{report}");
}

#[tokio::test]
async fn a_label_that_cannot_be_one_fails_the_run_and_says_why() {
    let engine = TestEngine::start().await;
    engine
        .work("orders", |worker| {
            worker.register(
                "order",
                |ctx: WorkflowContext, _: ()| async move { ctx.set_label("a=b", "x").await },
            );
        })
        .await;

    let run = engine.client().workflow("order", "orders", ()).await.unwrap();
    let error = run.result::<()>().await.unwrap_err().to_string();

    assert!(error.contains("refused a label: name is \"a=b\""), "{error}");
    engine.close().await;
}

#[tokio::test]
async fn a_start_with_a_bad_label_or_too_many_is_refused() {
    let engine = TestEngine::start().await;
    let start = || engine.client().workflow("order", "orders", ());

    let bad = start().label("", "x").await.err().unwrap().to_string();
    let many = (0..65).fold(start(), |start, n| start.label(format!("label-{n}"), "x"));
    let many = many.await.err().unwrap().to_string();

    assert!(bad.contains("labels is \"\": this name must not be empty"), "{bad}");
    assert!(many.contains("labels is 65: at most 64"), "{many}");
    engine.close().await;
}
