//! A row that cannot be read is left alone, and its neighbours do not notice.

use kagzi_model::{Command, Name, Rejection, RunId, Status};
use kagzi_store::StoreError;

use crate::{
    Stage,
    schedules::{MINUTE_MS, create, minutely, ok, runs, sweep},
    stage::TYPE,
};

const VICTIM: &str = "(SELECT run_id FROM runs WHERE business_id = 'victim')";

/// A victim and a neighbour wait, both due. The victim is damaged while the store is closed.
async fn beside_a_victim(stage: &mut Stage, damage: &str) -> (RunId, RunId) {
    let victim = stage.start("victim").await;
    stage.pass_one_tick();
    let neighbour = stage.start("neighbour").await;
    stage.damage(damage).await;
    (victim, neighbour)
}

/// The neighbour is delivered and completes; new runs are; the victim is not, and it is named.
async fn only_the_victim_stands_still(stage: &Stage, victim: RunId, neighbour: RunId) {
    let mut standing = stage.stand_by(2).await;
    assert_eq!(standing.next().await.run.id, neighbour, "the victim was due before it");
    let fresh = stage.start(&format!("fresh-{}", standing.worker)).await;
    let next = standing.next().await;
    assert_eq!(next.run.id, fresh);
    stage.ok(stage.complete(&next.lease())).await;
    assert_eq!(stage.run(fresh).await.state.status(), Status::Completed);
    stage.settle().await;
    assert!(standing.ready().is_none(), "the victim is never given out");

    let named = stage.store.stats().aside.list(10);
    assert_eq!(named.len(), 1, "{named:?}");
    assert!(named[0].0.to_string().contains(&victim.to_string()), "{named:?}");
    let refused = stage.apply(stage.cancel(victim)).await;
    assert!(matches!(refused, Err(Rejection::Unreadable { .. })), "{refused:?}");
    stage.worker(kagzi_store::WorkerCommand::Deregister { id: standing.worker }).await.unwrap();
}

pub async fn an_event_of_a_kind_that_only_a_newer_server_knows_stops_nobody(mut stage: Stage) {
    // A field of text, and the length of the input, which is two bytes long.
    let newer =
        format!("UPDATE events SET kinds = x'C8', detail = x'01060A02676F7802' WHERE run_id = {VICTIM}");
    let (victim, neighbour) = beside_a_victim(&mut stage, &newer).await;

    only_the_victim_stands_still(&stage, victim, neighbour).await;
    stage.reopen().await;
    only_the_victim_stands_still(&stage, victim, neighbour).await;

    let events = stage.events(victim).await;
    assert_eq!(events[0].kind.name(), "kind 200", "and its history is shown as it is");
    assert!(events[0].kind.to_json().contains("0a02676f7802"));
    assert_eq!(events[0].payload.as_ref().map(|payload| payload.data.len()), Some(2));
}

pub async fn a_damaged_event_stops_nobody(mut stage: Stage) {
    let noise = format!("UPDATE events SET detail = x'6E6F697365' WHERE run_id = {VICTIM}");
    let (victim, neighbour) = beside_a_victim(&mut stage, &noise).await;

    only_the_victim_stands_still(&stage, victim, neighbour).await;
    stage.reopen().await;
    only_the_victim_stands_still(&stage, victim, neighbour).await;
}

pub async fn a_damaged_row_of_a_run_stops_nobody(mut stage: Stage) {
    let noise = "UPDATE runs SET options = '{' WHERE business_id = 'victim'";
    let (victim, neighbour) = beside_a_victim(&mut stage, noise).await;

    only_the_victim_stands_still(&stage, victim, neighbour).await;
    stage.reopen().await;
    only_the_victim_stands_still(&stage, victim, neighbour).await;

    let read = stage.store.run(&stage.namespace, victim).await;
    assert!(matches!(read, Err(StoreError::Corrupt(_))), "{read:?}");
}

pub async fn a_start_under_the_id_of_a_run_that_cannot_be_read_is_refused_and_makes_no_second_one(
    mut stage: Stage,
) {
    let noise = "UPDATE runs SET options = '{' WHERE business_id = 'victim'";
    let (victim, _) = beside_a_victim(&mut stage, noise).await;

    let again = stage.apply(Command::start(stage.new_run("victim"))).await;

    assert!(matches!(again, Err(Rejection::Unreadable { run, .. }) if run == victim), "{again:?}");
}

pub async fn a_deadline_of_a_run_that_cannot_be_read_holds_up_no_other(mut stage: Stage) {
    let late = |stage: &Stage, id: &str| {
        let mut start = stage.new_run(id);
        start.deadline_at = Some(stage.now().plus_ms(1_000));
        start
    };
    let victim = stage.start_with(late(&stage, "victim")).await;
    let neighbour = stage.start_with(late(&stage, "neighbour")).await;
    stage.damage(&format!("UPDATE events SET detail = x'7B7D' WHERE run_id = {VICTIM}")).await;

    stage.pass_ms(2_000);
    stage.sweep_expired().await;

    assert_eq!(stage.run(neighbour).await.state.status(), Status::TimedOut);
    assert_eq!(stage.run(victim).await.state.status(), Status::Pending, "it is left alone");
    let swept =
        stage.store.sweep(kagzi_store::SweepKind::Expired { now: stage.now(), leap: None }).await.unwrap();
    assert!(
        !swept.more && swept.next_at.is_none_or(|at| at > stage.now()),
        "it is not looked at again and again"
    );
}

pub async fn a_schedule_that_cannot_be_read_stops_no_other(mut stage: Stage) {
    ok(&stage, "victim", create(minutely(kagzi_model::schedule::Overlap::Allow))).await;
    ok(&stage, "neighbour", create(minutely(kagzi_model::schedule::Overlap::Allow))).await;
    stage.damage("UPDATE schedules SET plan = '{' WHERE schedule_id = 'victim'").await;

    for round in 1..=2 {
        stage.pass_ms(MINUTE_MS as u64);
        sweep(&stage).await;
        assert_eq!(runs(&stage, "neighbour").await.len(), round);
        stage.reopen().await;
    }

    sweep(&stage).await;
    assert_eq!(runs(&stage, "victim").await.len(), 0);
}

pub async fn settings_of_a_namespace_that_cannot_be_read_stop_no_other_namespace(mut stage: Stage) {
    let damaged = stage.namespace.clone();
    let worker = stage.register(1).await;
    stage.start("victim").await;
    stage.damage(&format!("UPDATE namespaces SET defaults = '{{' WHERE namespace_id = '{damaged}'")).await;

    let mut stranded = stage.stand_by_as(worker, &[TYPE]).await;
    stage.namespace = Name::from(format!("{damaged}-neighbour"));
    let neighbour = stage.start("neighbour").await;
    let mut standing = stage.stand_by(1).await;

    assert_eq!(standing.next().await.run.id, neighbour);
    stage.settle().await;
    assert!(stranded.ready().is_none(), "nobody knows its limits");
    let named = stage.store.stats().aside.list(10);
    assert!(named.iter().any(|(row, _)| row.to_string().contains(&*damaged)), "{named:?}");
}
