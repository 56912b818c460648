use kagzi::WorkflowContext;
use kagzi::client::RunStatus;
use kagzi::testing::TestEngine;
use kagzi::workflow::WorkflowFailedEvent;

use crate::{Count, seconds};

async fn failing(_: WorkflowContext, _: Vec<u32>) -> anyhow::Result<u32> {
    anyhow::bail!("card declined")
}

async fn note(_: WorkflowContext, event: WorkflowFailedEvent) -> anyhow::Result<WorkflowFailedEvent> {
    Ok(event)
}

async fn greet(_: WorkflowContext, _: ()) -> anyhow::Result<()> {
    Ok(())
}

/// All runs of this type.
async fn runs_of(engine: &TestEngine, workflow_type: &str) -> Vec<kagzi::client::Run> {
    engine.client().runs().workflow_type(workflow_type).page("").await.unwrap().rows
}

#[tokio::test]
async fn the_workflows_own_handler_is_started_once_with_the_input_of_the_failed_run() {
    let engine = TestEngine::start().await;
    engine
        .work("q", |worker| {
            worker.register("failing", failing).register("note", note);
        })
        .await;

    let start = engine.client().workflow("failing", "q", [4, 5, 0]).id("order-42").on_failure("note");
    let run = start.await.unwrap();
    run.result::<u32>().await.unwrap_err();
    engine.settle().await;

    let handlers = runs_of(&engine, "note").await;
    assert_eq!(handlers.len(), 1);
    assert_eq!(handlers[0].handler_of.as_deref(), Some(run.run_id()));
    let event = engine.client().handle(&handlers[0].run_id).result::<WorkflowFailedEvent>().await.unwrap();
    assert_eq!(event.failed_run_id, run.run_id());
    assert_eq!((event.workflow_type.as_str(), event.task_queue.as_str()), ("failing", "q"));
    assert_eq!((event.business_id.as_str(), event.namespace_id.as_str()), ("order-42", "default"));
    assert_eq!((event.error.as_str(), event.error_code.as_str()), ("card declined", "ERROR"));
    assert_eq!((event.status.name(), event.attempts), ("FAILED", 1));
    assert_eq!(event.input::<Vec<u32>>().unwrap(), [4, 5, 0]);
    assert_eq!(event.input_bytes(), "[4,5,0]");
    assert!(event.started_at.is_some() && event.failed_at.is_some());
}

#[tokio::test]
async fn a_handler_may_have_a_queue_of_its_own() {
    let engine = TestEngine::start().await;
    engine
        .work("q", |worker| {
            worker.register("failing", failing);
        })
        .await;
    engine
        .work("alerts", |worker| {
            worker.register("note", note);
        })
        .await;

    let start = engine.client().workflow("failing", "q", [1]).on_failure("note").on_failure_queue("alerts");
    start.await.unwrap().result::<u32>().await.unwrap_err();
    engine.settle().await;

    let handlers = runs_of(&engine, "note").await;
    assert_eq!((handlers.len(), handlers[0].status), (1, RunStatus::Completed));
}

#[tokio::test]
async fn the_namespaces_handler_hears_of_every_failure_but_not_of_its_own() {
    let engine = TestEngine::start().await;
    let count = Count::default();
    let calls = count.clone();
    let broken = move |_: WorkflowContext, event: WorkflowFailedEvent| {
        calls.up();
        async move { Err::<(), _>(anyhow::anyhow!("the handler of {} is broken", event.workflow_type)) }
    };
    engine
        .work("q", |worker| {
            worker.register("failing", failing).register("other", failing);
        })
        .await;
    engine
        .work("alerts", |worker| {
            worker.register_failure_handler(broken).register("greet", greet);
        })
        .await;
    // The handler is known from the registry, so its worker must have been there: a run shows that it is.
    let greeted = engine.client().workflow("greet", "alerts", ()).await.unwrap();
    greeted.result::<()>().await.unwrap();

    for workflow_type in ["failing", "other"] {
        let run = engine.client().workflow(workflow_type, "q", [1]).await.unwrap();
        run.result::<u32>().await.unwrap_err();
    }
    engine.settle().await;

    let handlers = runs_of(&engine, "__kagzi_failure_handler").await;
    assert_eq!((handlers.len(), count.get()), (2, 2));
    assert!(handlers.iter().all(|handler| handler.status == RunStatus::Failed));
}

#[tokio::test]
async fn a_run_that_times_out_or_is_terminated_starts_its_handler_and_a_cancelled_one_does_not() {
    let engine = TestEngine::start().await;
    let sleepy = |ctx: WorkflowContext, (): ()| async move {
        ctx.sleep(seconds(3600)).await?;
        Ok(())
    };
    engine
        .work("q", |worker| {
            worker.register("sleepy", sleepy).register("note", note);
        })
        .await;
    let start = async |id: &str| {
        let start = engine.client().workflow("sleepy", "q", ()).id(id).execution_timeout(seconds(60));
        start.on_failure("note").await.unwrap()
    };

    let (late, stopped, cancelled) = (start("late").await, start("stopped").await, start("cancelled").await);
    engine.settle().await;
    stopped.terminate("no longer needed").await.unwrap();
    cancelled.cancel("no longer wanted").await.unwrap();
    engine.settle().await;
    engine.advance(seconds(60));
    late.finished().await.unwrap();
    engine.settle().await;

    let mut events = Vec::new();
    for handler in runs_of(&engine, "note").await {
        let handle = engine.client().handle(handler.run_id);
        let event = handle.result::<WorkflowFailedEvent>().await.unwrap();
        events.push((event.business_id, event.status.name().to_owned()));
    }
    events.sort();
    let expected = [("late", "TIMED_OUT"), ("stopped", "FAILED")];
    assert_eq!(events, expected.map(|(id, status)| (id.to_owned(), status.to_owned())));
}
