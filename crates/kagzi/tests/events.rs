//! Events that are published to everybody who waits for them, as users write it.

use std::time::Duration;

use kagzi::admin::Trigger;
use kagzi::client::{Reason, RunHandle, RunStatus};
use kagzi::testing::TestEngine;
use kagzi::workflow::WorkflowFailedEvent;
use kagzi::{Error, WorkflowContext};

const DAY: Duration = Duration::from_secs(86_400);

async fn order(ctx: WorkflowContext, id: String) -> anyhow::Result<String> {
    let cents: u64 = ctx.event("order.paid").key(&id).await?;
    ctx.run("ship", async move { Ok(format!("{id} for {cents}")) }).await
}

async fn patient(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
    let cents: Option<u64> = ctx.event("order.paid").key("42").timeout(DAY).await?;
    Ok(cents.map_or_else(|| "unpaid".to_owned(), |cents| cents.to_string()))
}

/// Waits for two kinds of events, whichever comes first, and then for the other.
async fn raced(ctx: WorkflowContext, _: ()) -> anyhow::Result<String> {
    let first = kagzi::select! {
        paid = async { ctx.event::<u64>("paid").await } => format!("paid {}", paid?),
        lost = async { ctx.event::<String>("lost").await } => format!("lost {}", lost?),
    };
    let then: u64 = ctx.event("paid").await?;
    Ok(format!("{first}, then {then}"))
}

async fn collect(ctx: WorkflowContext, seen: Vec<u64>) -> anyhow::Result<Vec<u64>> {
    let tick: u64 = ctx.event("tick").await?;
    let seen = [seen, vec![tick]].concat();
    if seen.len() < 3 {
        return ctx.continue_as_new(&seen);
    }
    Ok(seen)
}

async fn doomed(_: WorkflowContext, _: ()) -> anyhow::Result<()> {
    anyhow::bail!("no stock")
}

async fn report(_: WorkflowContext, failed: WorkflowFailedEvent) -> anyhow::Result<String> {
    Ok(format!("{} {} {:?}", failed.workflow_type, failed.error, failed.status))
}

async fn engine() -> TestEngine {
    let engine = TestEngine::start().await;
    engine
        .work("q", |worker| {
            worker.register("order", order).register("patient", patient).register("raced", raced);
            worker.register("collect", collect).register("doomed", doomed).register("report", report);
        })
        .await;
    engine
}

async fn started(engine: &TestEngine, workflow: &str, input: impl serde::Serialize) -> RunHandle {
    let run = engine.client().workflow(workflow, "q", &input).await.unwrap();
    engine.settle().await;
    run
}

#[tokio::test]
async fn every_run_that_waits_hears_of_an_event_and_says_what_it_waits_for() {
    let engine = engine().await;
    let (one, two) = (started(&engine, "order", "42").await, started(&engine, "order", "42").await);
    let other = started(&engine, "order", "43").await;
    let waiting = one.describe().await.unwrap();
    assert_eq!((waiting.status, waiting.reason), (RunStatus::Sleeping, Some(Reason::Event)));
    let why = one.explain().await.unwrap().sentence;
    assert!(why.contains("it waits for an event on 'order.paid' with key '42'"), "{why}");
    assert!(why.contains("kagzi event publish order.paid JSON --key '42'"), "{why}");

    let published = engine.client().publish("order.paid", &700).key("42").id("p-1").await.unwrap();

    assert!(!published.already);
    for run in [one, two] {
        assert_eq!(run.result::<String>().await.unwrap(), "42 for 700");
    }
    assert_eq!(other.describe().await.unwrap().status, RunStatus::Sleeping);
    assert!(engine.client().publish("order.paid", &1).key("42").id("p-1").await.unwrap().already);
    engine.close().await;
}

#[tokio::test]
async fn a_wait_ends_by_itself_in_virtual_time() {
    let engine = engine().await;
    let run = started(&engine, "patient", ()).await;
    engine.advance(DAY);

    assert_eq!(run.result::<String>().await.unwrap(), "unpaid");
    engine.close().await;
}

#[tokio::test]
async fn a_race_over_events_replays_as_it_went_and_takes_nothing_twice() {
    let engine = engine().await;
    let run = started(&engine, "raced", ()).await;
    engine.client().publish("lost", "it").await.unwrap();
    engine.settle().await;
    engine.client().publish("paid", &7).await.unwrap();

    assert_eq!(run.result::<String>().await.unwrap(), "lost it, then 7");
    engine.close().await;
}

#[tokio::test]
async fn a_run_that_continues_takes_each_event_once() {
    let engine = engine().await;
    let run = started(&engine, "collect", Vec::<u64>::new()).await;
    for tick in 1..=3 {
        engine.client().publish("tick", &tick).await.unwrap();
    }

    assert_eq!(run.result::<Vec<u64>>().await.unwrap(), [1, 2, 3]);
    engine.close().await;
}

#[tokio::test]
async fn a_trigger_starts_a_run_per_event_and_one_for_failures_tells_of_them() {
    let engine = engine().await;
    let admin = engine.client().admin();
    let trigger = Trigger::new("ops", "kagzi/workflow.failed", "report", "q").key("doomed");
    assert_eq!(admin.create_trigger(trigger.clone()).await.unwrap(), trigger);
    assert_eq!(admin.triggers().all().await.unwrap(), [trigger]);

    let run = engine.client().workflow("doomed", "q", ()).await.unwrap();
    run.result::<()>().await.unwrap_err();
    engine.settle().await;

    let runs = engine.client().runs().all().await.unwrap();
    let report = runs.iter().find(|run| run.workflow_type == "report").expect("a run was started");
    let told: String = engine.client().handle(&report.run_id).result().await.unwrap();
    assert_eq!(told, "doomed no stock Failed");
    let kept = admin.events().topic("kagzi/workflow.failed").all().await.unwrap();
    assert_eq!((kept.len(), kept[0].key.as_deref(), kept[0].delivered), (1, Some("doomed"), true));
    admin.delete_trigger("ops").await.unwrap();
    assert_eq!(admin.triggers().all().await.unwrap(), []);
    engine.close().await;
}

#[tokio::test]
async fn what_cannot_be_published_is_refused_with_the_field_and_the_next_step() {
    let engine = engine().await;
    let client = engine.client();
    let message = |refused: Result<_, Error>| {
        refused.map(|_: kagzi::client::PublishedEvent| ()).unwrap_err().to_string()
    };

    let engines = message(client.publish("kagzi/workflow.failed", &1).await);
    assert!(engines.contains("topic") && engines.contains("the engine's own"), "{engines}");
    let character = message(client.publish("order#paid", &1).await);
    assert!(character.contains("topic") && character.contains("letters, digits"), "{character}");
    let tilde = message(client.publish("~paid", &1).await);
    assert!(tilde.contains("'~' is not allowed"), "{tilde}");
    let key = message(client.publish("paid", &1).key("k".repeat(256)).await);
    assert!(key.contains("key") && key.contains("255"), "{key}");
    let id = message(client.publish("paid", &1).id("i".repeat(256)).await);
    assert!(id.contains("event_id") && id.contains("255"), "{id}");
    let keep = message(client.publish("paid", &1).keep(DAY * 91).await);
    assert!(keep.contains("keep_ms") && keep.contains("ninety days"), "{keep}");
    let large = message(client.publish("paid", &"x".repeat(3 * 1024 * 1024)).await);
    assert!(large.contains("payload"), "{large}");
    assert_eq!(client.admin().events().all().await.unwrap(), [], "nothing is half done");
    engine.close().await;
}
