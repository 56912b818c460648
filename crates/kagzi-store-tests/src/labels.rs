//! Labels: set when a run starts and by its workflow, the last write of a name counts, replay repeats
//! nothing.

use kagzi_model::{Command, Done, LeaseRef, Name, Reply, StepRef, act};

use crate::Stage;

fn set(lease: &LeaseRef, position: u32, name: &str, value: &str) -> Command {
    let step = StepRef { path: format!("label-{position}").into(), position };
    lease.report(act::SetLabel { step, name: name.into(), value: value.into() })
}

fn shown(run: &kagzi_model::Run) -> Vec<(String, String)> {
    run.labels.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

pub async fn labels_of_the_start_and_of_the_workflow_are_on_the_run(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let mut start = stage.new_run("order-1");
    start.labels = [("tenant".into(), "acme".into()), ("stage".into(), "new".into())].into_iter().collect();
    let run = stage.start_with(start).await;
    let lease = standing.next().await.lease();

    stage.ok(set(&lease, 0, "stage", "charged")).await;
    stage.ok(set(&lease, 1, "empty", "")).await;
    stage.ok(stage.complete(&lease)).await;

    let labels = [("empty", ""), ("stage", "charged"), ("tenant", "acme")];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(shown(&stage.run(run).await), labels);
}

pub async fn a_label_that_is_sent_again_after_a_later_one_does_not_come_back(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(set(&lease, 0, "stage", "charged")).await;
    stage.ok(set(&lease, 1, "stage", "shipped")).await;

    let again = stage.ok(set(&lease, 0, "stage", "charged")).await;

    assert_eq!(again, Reply::Done(Done { already: true }));
    assert_eq!(stage.run(run).await.labels.get("stage"), Some(&Name::from("shipped")));
    let names = stage.event_names(run).await;
    assert_eq!(names, ["run_started", "run_claimed", "label_set", "label_set"]);
}

pub async fn several_labels_of_one_call_are_set_in_order(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();

    let commands = (0..10).map(|n| set(&lease, n, "stage", &n.to_string())).collect();
    let outcomes = stage.apply_all(commands).await;

    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    assert_eq!(stage.run(run).await.labels.get("stage"), Some(&Name::from("9")));
}
