//! A row that cannot be read is left alone, and its neighbours do not notice.

use kagzi_model::{Command, Name, Rejection, RunId, Status};
use kagzi_store::{Direction, PageRequest, RunFilter, StoreError};

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
    stage.worker(kagzi_store::Deregister { id: standing.worker }).await.unwrap();
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

pub async fn a_state_that_only_a_newer_server_knows_is_kept_and_stops_nobody(mut stage: Stage) {
    let state = "{\"is\":\"compensating\",\"step\":\"charge\"}";
    let newer = format!("UPDATE runs SET state = '{state}' WHERE business_id = 'victim'");
    let (victim, neighbour) = beside_a_victim(&mut stage, &newer).await;

    only_the_victim_stands_still(&stage, victim, neighbour).await;
    stage.reopen().await;
    only_the_victim_stands_still(&stage, victim, neighbour).await;

    // Only a row that still says the same is changed back.
    let back = "{\"is\":\"ready\",\"since\":1}";
    stage.damage(&format!("UPDATE runs SET state = '{back}' WHERE state = '{state}'")).await;
    assert_eq!(stage.run(victim).await.state.status(), Status::Pending);
}

pub async fn a_page_with_a_row_that_cannot_be_read_shows_the_others_and_counts_it(mut stage: Stage) {
    let state = "{\"is\":\"compensating\",\"step\":\"charge\"}";
    let newer = format!("UPDATE runs SET state = '{state}' WHERE business_id = 'victim'");
    let (victim, neighbour) = beside_a_victim(&mut stage, &newer).await;
    let filter = RunFilter::default();
    let whole = PageRequest { from: None, direction: Direction::Next, limit: 10 };

    let page = stage.store.runs(&stage.namespace, &filter, &whole).await.unwrap();
    let ids: Vec<RunId> = page.rows.iter().map(|run| run.id).collect();
    assert!(ids.contains(&neighbour) && !ids.contains(&victim), "{ids:?}");
    assert_eq!(page.unreadable.count, 1);

    // One at a time, every other run is still reached, and the victim is counted once.
    let (mut seen, mut left_out, mut from) = (Vec::new(), 0, None);
    loop {
        let request = PageRequest { from, limit: 1, ..whole };
        let page = stage.store.runs(&stage.namespace, &filter, &request).await.unwrap();
        left_out += page.unreadable.count;
        seen.extend(page.rows.iter().map(|run| run.id));
        let last = page.rows.last().and_then(|run| filter.order.cursor(run));
        from = last.or(page.unreadable.alone.map(|(_, last)| last));
        if !page.has_next {
            break;
        }
    }
    assert_eq!((seen, left_out), (ids, 1));
}

/// A victim with two results in rows of their own, and a change of them while the store is closed.
async fn with_two_results(stage: &mut Stage, damage: &str) -> RunId {
    let mut standing = stage.stand_by(1).await;
    let victim = stage.start("victim").await;
    let lease = standing.next().await.lease();
    stage.ok(stage.record(&lease, "charge", b"1")).await;
    stage.ok(stage.record(&lease, "ship", b"1")).await;
    drop(standing);
    stage.damage(damage).await;
    victim
}

pub async fn a_history_with_a_row_missing_is_not_gone_on_with(mut stage: Stage) {
    let gap = format!("UPDATE events SET first_seq = 5 WHERE first_seq = 4 AND run_id = {VICTIM}");
    let victim = with_two_results(&mut stage, &gap).await;

    let refused = stage.apply(stage.cancel(victim)).await;

    let told = "begins with event 5, not 4";
    assert!(matches!(&refused, Err(Rejection::Unreadable { why, .. }) if why.contains(told)), "{refused:?}");
}

pub async fn a_second_result_of_a_step_is_noticed_when_the_run_is_loaded(mut stage: Stage) {
    let first = format!("(SELECT detail FROM events WHERE first_seq = 3 AND run_id = {VICTIM})");
    let twice = format!("UPDATE events SET detail = {first} WHERE first_seq = 4 AND run_id = {VICTIM}");
    let victim = with_two_results(&mut stage, &twice).await;

    let refused = stage.apply(stage.cancel(victim)).await;

    let told = "event 4 is a second result of step charge";
    assert!(matches!(&refused, Err(Rejection::Unreadable { why, .. }) if why.contains(told)), "{refused:?}");
}

pub async fn rows_of_events_have_the_same_bytes_on_every_database(mut stage: Stage) {
    let victim = stage.start("victim").await;
    stage.ok(stage.cancel(victim)).await;
    let before: Vec<_> = stage.events(victim).await.into_iter().map(|event| event.at).collect();

    // The input has 15 bytes. The reason is "asked to", and "tester" asked.
    let (started, cancelled) = ("x'0102780F'", "x'01120A0861736B656420746F1206746573746572'");
    let known = format!("(kinds = x'01' AND detail = {started}) OR (kinds = x'0F' AND detail = {cancelled})");
    stage.damage(&format!("UPDATE events SET at = at + 1 WHERE {known}")).await;

    let after: Vec<_> = stage.events(victim).await.into_iter().map(|event| event.at.0 - 1).collect();
    assert_eq!(
        after,
        before.iter().map(|at| at.0).collect::<Vec<_>>(),
        "both rows were found by their bytes"
    );
}

pub async fn events_above_the_level_of_the_database_are_not_written(mut stage: Stage) {
    stage.start("before").await;
    stage.damage("UPDATE levels SET level = 0 WHERE name = 'kinds'").await;
    let start = stage.new_run("victim");
    let victim = start.id;

    let refused = stage.apply(kagzi_model::Command::start(start)).await;

    let told = "run_started is of level 1, and the database allows level 0";
    assert!(matches!(&refused, Err(Rejection::NotStorable { why }) if why.contains(told)), "{refused:?}");
    assert_eq!(stage.store.run(&stage.namespace, victim).await.unwrap(), None, "and nothing was written");
    stage.damage("UPDATE levels SET level = 1 WHERE name = 'kinds'").await;
    stage.start("victim").await;
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

pub async fn a_namespace_that_cannot_be_read_is_listed_by_its_name_among_the_others(mut stage: Stage) {
    let damaged = stage.namespace.clone();
    stage.start("victim").await;
    stage.namespace = Name::from(format!("{damaged}-neighbour"));
    stage.start("neighbour").await;
    stage.damage(&format!("UPDATE namespaces SET defaults = '{{' WHERE namespace_id = '{damaged}'")).await;

    let found = stage.store.namespaces(None, 1_000).await.unwrap();

    let read = |name: &Name| &found.iter().find(|row| row.name == *name).unwrap().read;
    assert!(read(&damaged).is_err(), "{found:?}");
    assert_eq!(read(&stage.namespace).as_ref().map(|row| &row.name), Ok(&stage.namespace));
}

pub async fn rows_that_are_due_and_cannot_be_leased_do_not_stand_in_the_way_of_their_queue(mut stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    // As many as a turn claims at once, and more.
    for n in 0..40 {
        let victim = stage.start(&format!("victim-{n}")).await;
        let lease = standing.next().await.lease();
        stage.ok(stage.complete(&lease)).await;
        assert_eq!(lease.run, victim);
    }
    stage.damage("UPDATE runs SET due_at = 1 WHERE business_id LIKE 'victim-%'").await;

    let mut standing = stage.stand_by(1).await;
    let neighbour = stage.start("neighbour").await;
    assert_eq!(standing.next().await.run.id, neighbour);

    let named = stage.store.stats().aside.list(100);
    assert!(named.iter().any(|(_, note)| note.why.contains("cannot be leased")), "{named:?}");
}
