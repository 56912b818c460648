//! Signals and the waits for them outlive a restart.

use kagzi_model::EventKind;
use kagzi_store::{Direction, PageRequest, RunFilter};

use crate::{
    Stage,
    replay_law::park,
    signals::{TOLD_BEFORE, signal, wait},
};

pub async fn a_repeat_is_recognised_before_and_after_it_was_taken_and_after_a_restart(mut stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(signal(&stage, run, "approved", "ada")).await;

    assert_eq!(stage.ok(signal(&stage, run, "approved", "ada")).await, TOLD_BEFORE);
    stage.ok(wait(&lease, "ok", "approved", None)).await;
    assert_eq!(stage.ok(signal(&stage, run, "approved", "ada")).await, TOLD_BEFORE);
    stage.reopen().await;
    assert_eq!(stage.ok(signal(&stage, run, "approved", "ada")).await, TOLD_BEFORE);

    let came = |name: &String| name == "signal_received";
    assert_eq!(stage.event_names(run).await.into_iter().filter(came).count(), 1);
}

pub async fn a_run_that_waits_is_found_by_its_reason_and_is_still_there_after_a_restart(mut stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(wait(&lease, "ok", "approved", None)).await;
    stage.ok(park(&lease, &["ok"])).await;

    stage.reopen().await;

    assert_eq!(stage.waits(run).await, ("signal", None));
    let filter = RunFilter { reason: Some("signal".into()), ..Default::default() };
    let page = PageRequest { from: None, direction: Direction::Next, limit: 10 };
    let found = stage.store.runs(&stage.namespace, &filter, &page).await.unwrap();
    assert_eq!(found.rows.iter().map(|run| run.id).collect::<Vec<_>>(), [run]);
    let mut heir = stage.stand_by(1).await;
    stage.ok(signal(&stage, run, "approved", "ada")).await;
    assert_eq!(heir.next().await.run.id, run);
    let ended = |kind: &EventKind| matches!(kind, EventKind::WaitEnded { .. });
    assert_eq!(stage.events(run).await.iter().filter(|event| ended(&event.kind)).count(), 1);
}
