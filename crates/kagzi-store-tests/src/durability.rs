//! What was acknowledged is there after a restart. (Power cuts and kills are tested with real processes.)

use kagzi_model::{
    Command, Done, GateCommand, IdReuse, NamespaceCommand, Rejection, Reply, RunOptions, StartRun, Started,
    State, WorkerStatus, act,
};
use kagzi_store::StoreError;

use crate::{Stage, TYPE};

pub async fn an_acknowledged_start_survives_reopening(mut stage: Stage) {
    let first = stage.new_run("order-1");
    let run = stage.start_with(first.clone()).await;
    let before = stage.run(run).await;

    stage.reopen().await;

    assert_eq!(stage.run(run).await, before);
    let view = stage.store.run(&stage.namespace, run).await.unwrap().unwrap();
    assert_eq!(view.input, Some(first.input.clone()));
    let again = StartRun { id: stage.new_run("order-1").id, ..first };
    let reply = stage.ok(Command::start(again)).await;
    assert_eq!(reply, Reply::Started(Started { run, existed: true }));
    assert_eq!(stage.stand_by(1).await.next().await.run.id, run);
}

pub async fn a_worker_goes_on_with_its_lease_after_reopening(mut stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    stage.ok(stage.record(&lease, "a", b"first")).await;

    stage.reopen().await;

    let again = stage.ok(stage.record(&lease, "a", b"first")).await;
    assert_eq!(again, Reply::Done(Done { already: true }));
    stage.ok(stage.record(&lease, "b", b"second")).await;
    let answer = stage.beat(standing.worker, vec![lease.clone()]).await.unwrap();
    assert_eq!((answer.status, answer.lost.len()), (WorkerStatus::Online, 0));
    stage.ok(stage.complete(&lease)).await;
    let expected = ["run_started", "run_claimed", "step_completed", "step_completed", "run_completed"];
    assert_eq!(stage.event_names(run).await, expected);
    stage.beat(standing.worker, vec![]).await.unwrap();
    assert_eq!(stage.worker_row(standing.worker).await.completed_total, 1);
}

pub async fn leases_from_before_reopening_count_against_the_limit(mut stage: Stage) {
    let mut before = stage.stand_by(1).await;
    stage.start("order-1").await;
    let lease = before.next().await.lease();

    stage.reopen().await;
    let mut after = stage.stand_by_as(before.worker, &[TYPE]).await;
    let second = stage.start("order-2").await;
    stage.settle().await;

    assert!(after.ready().is_none());
    stage.ok(stage.complete(&lease)).await;
    assert_eq!(after.next().await.run.id, second);
}

pub async fn a_sleeper_survives_reopening_and_wakes_on_time(mut stage: Stage) {
    let mut before = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = before.next().await.lease();
    stage.ok(stage.sleep(&lease, "nap", 60_000)).await;
    let until = stage.now().plus_ms(60_000);

    stage.reopen().await;
    let mut after = stage.stand_by_as(before.worker, &[TYPE]).await;
    stage.pass_until_just_before(until);
    stage.settle().await;
    assert!(after.ready().is_none());
    stage.pass_one_tick();

    assert_eq!(after.next().await.run.id, run);
}

pub async fn every_row_and_event_is_the_same_after_reopening(mut stage: Stage) {
    let mut standing = stage.stand_by(10).await;
    let mut runs = Vec::new();
    for number in 0..6 {
        runs.push(stage.start(&format!("order-{number}")).await);
        let lease = standing.next().await.lease();
        stage.ok(stage.record(&lease, "a", b"\xff\x00")).await;
        let command = match number {
            0 => stage.complete(&lease),
            1 => stage.fail(&lease),
            2 => stage.sleep(&lease, "nap", 1_000),
            3 => stage.fail_step(&lease, "b", 1),
            4 => lease.report(act::Block { message: "code changed".into() }),
            _ => stage.cancel(lease.run),
        };
        stage.ok(command).await;
    }
    let mut before = Vec::new();
    for run in &runs {
        before.push((stage.store.run(&stage.namespace, *run).await.unwrap(), stage.events(*run).await));
    }
    // Its totals are written with a heartbeat, where servers share a database.
    stage.beat(standing.worker, vec![]).await.unwrap();
    let worker = stage.worker_row(standing.worker).await;

    stage.reopen().await;

    for (run, before) in runs.iter().zip(before) {
        let after = (stage.store.run(&stage.namespace, *run).await.unwrap(), stage.events(*run).await);
        assert_eq!(after, before);
    }
    assert_eq!(stage.worker_row(standing.worker).await, worker);
}

pub async fn a_closed_store_refuses_and_loses_nothing(mut stage: Stage) {
    let run = stage.start("order-1").await;
    stage.store.close().await;
    stage.store.close().await;

    let refused = stage.store.apply(vec![stage.cancel(run)]).await.unwrap_err();

    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused}");
    stage.reopen().await;
    assert!(matches!(stage.run(run).await.state, State::Ready { .. }));
}

pub async fn a_schedule_survives_reopening_and_fires_once(mut stage: Stage) {
    crate::schedules::fires_once_over_a_reopening(&mut stage).await;
}

pub async fn namespaces_and_gates_survive_reopening(mut stage: Stage) {
    let limit = GateCommand::Limit { max_concurrent: Some(1) };
    let gates =
        [stage.gate(stage.queue_gate(), limit).await, stage.gate(stage.type_gate("refund"), pause()).await];
    let disabled = stage.change(NamespaceCommand::Disable { by: "ada".into(), note: "unpaid".into() }).await;
    stage.change(NamespaceCommand::Enable).await.unwrap();
    let mut standing = stage.stand_by(10).await;
    stage.start("order-1").await;
    standing.next().await;
    stage.start("order-2").await;
    let disabled = NamespaceCommand::Disable { by: "bob".into(), note: disabled.unwrap().name.to_string() };
    let namespace = stage.change(disabled).await.unwrap();

    stage.reopen().await;

    assert_eq!(stage.store.namespace(&stage.namespace).await.unwrap(), Some(namespace));
    assert_eq!(stage.store.gates(&stage.namespace).await.unwrap(), gates);
    let mut again = stage.stand_by(10).await;
    stage.settle().await;
    assert!(again.ready().is_none(), "the lease from before counts");
    let refused = stage.apply(Command::start(stage.new_run("order-3"))).await;
    assert!(matches!(refused, Err(Rejection::NamespaceDisabled { .. })), "{refused:?}");
}

fn pause() -> GateCommand {
    GateCommand::Pause { by: "ada".into(), note: "deploy".into() }
}

pub async fn a_ready_run_is_claimed_although_the_clock_was_set_back_over_a_restart(mut stage: Stage) {
    let run = stage.start("order-1").await;
    let started_at = stage.now();

    stage.reopen_at(started_at.plus_ms(-3_600_000)).await;

    assert!(stage.now() >= started_at, "time goes on from the newest entry");
    assert_eq!(stage.stand_by(1).await.next().await.run.id, run);
}

pub async fn a_start_time_and_an_id_that_was_taken_over_outlive_a_restart(mut stage: Stage) {
    let former = stage.start("order-1").await;
    stage.ok(stage.cancel(former)).await;
    let at = stage.now().plus_ms(60_000);
    let start = stage.new_run("order-1");
    let options = RunOptions { start_at: Some(at), reuse: IdReuse::AfterEnd, ..start.options.clone() };
    let run = stage.start_with(StartRun { options, ..start }).await;

    stage.reopen().await;
    let mut worker = stage.stand_by(1).await;
    stage.pass_until_just_before(at);
    stage.settle().await;

    assert!(worker.ready().is_none(), "it is not due");
    let named = stage.store.run_by_business(&stage.namespace, &"order-1".into()).await.unwrap();
    assert_eq!(named, Some(run));
    assert_eq!(stage.run(former).await.business_id, None);
    stage.pass_one_tick();
    assert_eq!(worker.next().await.run.id, run);
}
