//! Triggers start a run for every event on their topic, once; and the engine publishes the runs that fail,
//! where anybody wants to hear of it.

use std::sync::Arc;

use kagzi_model::{
    CreateTrigger, DeleteTrigger, LeaseRef, Name, NounRejection, Run, TRIGGER_LABEL, Topic, Trigger,
    WORKFLOW_FAILED, limits::TRIGGERS_MAX,
};
use kagzi_store::{ChangeNoun, Direction, PageRequest, RunFilter};

use crate::{
    Stage, TYPE,
    events_published::{deliver, event, heard, paid, publish},
    replay_law::park,
    signals::wait,
};

fn rule(stage: &Stage, id: &str, topic: &str, key: Option<&str>) -> CreateTrigger {
    let trigger = Trigger {
        topic: topic.into(),
        key: key.map(Name::from),
        workflow_type: TYPE.into(),
        task_queue: "started".into(),
    };
    CreateTrigger { namespace: stage.namespace.clone(), id: id.into(), trigger }
}

async fn create(stage: &Stage, id: &str, topic: &str, key: Option<&str>) {
    stage.store.ask(ChangeNoun(Arc::new(rule(stage, id, topic, key)))).await.unwrap().unwrap();
}

async fn delete(stage: &Stage, id: &str) {
    let rule = DeleteTrigger { namespace: stage.namespace.clone(), id: id.into() };
    stage.store.ask(ChangeNoun(Arc::new(rule))).await.unwrap().unwrap();
}

/// Runs that triggers started: trigger and input.
async fn started(stage: &Stage) -> Vec<(String, String)> {
    let page = PageRequest { from: None, direction: Direction::Next, limit: 100 };
    let runs = stage.store.runs(&stage.namespace, &RunFilter::default(), &page).await.unwrap();
    let mut started = Vec::new();
    for Run { id, labels, .. } in runs.rows {
        let Some(trigger) = labels.get(TRIGGER_LABEL) else { continue };
        let view = stage.store.run(&stage.namespace, id).await.unwrap().unwrap();
        let input = view.input.map(|input| String::from_utf8_lossy(&input.data).into_owned());
        started.push((trigger.to_string(), input.unwrap_or_default()));
    }
    started.sort();
    started
}

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(trigger, input)| ((*trigger).to_owned(), (*input).to_owned())).collect()
}

pub async fn a_trigger_starts_one_run_per_event_of_its_topic_and_key(stage: Stage) {
    publish(&stage, event(&stage, "order.paid", "42", "before")).await;
    stage.pass_ms(1);
    create(&stage, "any", "order.paid", None).await;
    create(&stage, "one", "order.paid", Some("42")).await;
    create(&stage, "other", "order.lost", None).await;
    for (key, id) in [("42", "e1"), ("43", "e2"), ("42", "e1")] {
        publish(&stage, event(&stage, "order.paid", key, id)).await;
    }
    deliver(&stage).await;
    deliver(&stage).await;

    let expected = pairs(&[("any", "e1"), ("any", "e2"), ("one", "e1")]);
    assert_eq!(started(&stage).await, expected, "none for an event from before it was made");

    delete(&stage, "any").await;
    publish(&stage, event(&stage, "order.paid", "43", "e3")).await;
    deliver(&stage).await;
    assert_eq!(started(&stage).await, expected);
}

pub async fn triggers_are_bounded_and_one_too_many_is_refused(stage: Stage) {
    for n in 0..TRIGGERS_MAX {
        create(&stage, &format!("t{n:03}"), "order.paid", Some("none")).await;
    }

    let refused =
        stage.store.ask(ChangeNoun(Arc::new(rule(&stage, "more", "order.paid", None)))).await.unwrap();
    let is_full =
        |refused: &NounRejection| matches!(refused, NounRejection::TooMany { max: TRIGGERS_MAX, .. });
    assert!(refused.as_ref().is_err_and(is_full), "{refused:?}");
    create(&stage, "t000", "order.paid", Some("none")).await;
    delete(&stage, "t000").await;
    create(&stage, "more", "order.paid", None).await;
}

async fn published(stage: &Stage) -> Vec<String> {
    let kept = stage.store.kept_events(&stage.namespace, None, Direction::Next, None, 10).await.unwrap();
    kept.iter().map(|event| event.key.topic.key.to_string()).collect()
}

async fn failed_run(stage: &Stage, id: &str) {
    let mut standing = stage.stand_by(1).await;
    stage.start(id).await;
    let lease: LeaseRef = standing.next().await.lease();
    stage.ok(stage.fail(&lease)).await;
}

pub async fn a_failed_run_is_published_in_its_commit_where_a_trigger_wants_it_and_else_not(stage: Stage) {
    failed_run(&stage, "unheard").await;
    assert_eq!(published(&stage).await, [""; 0], "nobody wants to hear of it");

    create(&stage, "ops", WORKFLOW_FAILED, Some(TYPE)).await;
    failed_run(&stage, "heard").await;
    assert_eq!(published(&stage).await, [TYPE]);
    deliver(&stage).await;
    let ran = started(&stage).await;
    assert_eq!(ran.len(), 1, "{ran:?}");
    for told in [r#""business_id":"heard""#, r#""status":"WORKFLOW_STATUS_FAILED""#] {
        assert!(ran[0].1.contains(told), "{ran:?}");
    }

    delete(&stage, "ops").await;
    failed_run(&stage, "unheard again").await;
    assert_eq!(published(&stage).await.len(), 1);
}

pub async fn a_run_that_waits_for_failures_hears_of_a_timeout(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let watcher = stage.start("watcher").await;
    let lease = standing.next().await.lease();
    let channel = Topic::new(WORKFLOW_FAILED, TYPE).channel();
    stage.ok(wait(&lease, "failed", &channel, None)).await;
    stage.ok(park(&lease, &["failed"])).await;
    let slow = kagzi_model::StartRun { deadline_at: Some(stage.now().plus_ms(500)), ..stage.new_run("slow") };
    let slow = stage.start_with(slow).await;
    stage.pass_ms(600);
    stage.sweep_expired().await;
    deliver(&stage).await;

    let heard = heard(&stage, watcher).await;
    assert!(heard.len() == 1 && heard[0].starts_with(&format!("{slow}:")), "{heard:?}");
    // What others publish is another topic, whatever its key is.
    publish(&stage, event(&stage, "order.paid", TYPE, "e1")).await;
    assert_ne!(channel, paid(TYPE));
}
