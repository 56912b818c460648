//! A worker that is gone: its runs go on elsewhere, and a run that takes workers down is stopped.

use kagzi_model::{RetryPolicy, RunOptions, State, WorkerStatus};
use kagzi_store::RegistryError;
use uuid::Uuid;

use crate::{Stage, TYPE};

const SILENT_MS: i64 = 10_000;

pub async fn the_runs_of_a_silent_worker_are_taken_over_with_backoff(stage: Stage) {
    let mut lost = stage.stand_by(1).await;
    let mut start = stage.new_run("order-1");
    let retry = RetryPolicy { initial_interval_ms: Some(2_500), ..RetryPolicy::default() };
    start.options = RunOptions { retry, ..RunOptions::default() };
    let run = stage.start_with(start).await;
    lost.next().await;
    stage.pass_ms(SILENT_MS as u64 + 1);
    let mut heir = stage.stand_by(1).await;

    stage.sweep_workers_silent_for_ms(SILENT_MS).await;

    // The lease has twenty seconds left; nobody waits for them.
    let retry_at = stage.now().plus_ms(2_500);
    let State::Retry { step: None, attempt: 1, at, failure } = stage.run(run).await.state else {
        panic!("{:?}", stage.run(run).await.state)
    };
    assert_eq!((at, &*failure.code), (retry_at, "WORKER_LOST"));
    assert_eq!(stage.worker_row(lost.worker).await.status, WorkerStatus::Offline);
    assert_eq!(stage.worker_row(heir.worker).await.status, WorkerStatus::Online);
    let told = stage.told.lost(run).await;
    assert_eq!((told.worker, told.epoch, told.cancelled), (lost.worker, 1, false));
    stage.pass_until_just_before(retry_at);
    stage.settle().await;
    assert!(heir.ready().is_none());
    stage.pass_one_tick();
    assert_eq!(heir.next().await.run.epoch, 2);
}

pub async fn a_heartbeat_keeps_a_worker_alive(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();

    for _ in 0..5 {
        stage.pass_ms(SILENT_MS as u64 - 1);
        stage.beat(standing.worker, vec![lease.clone()]).await.unwrap();
        stage.sweep_workers_silent_for_ms(SILENT_MS).await;
    }

    assert_eq!(stage.worker_row(standing.worker).await.status, WorkerStatus::Online);
    assert_eq!(stage.run(run).await.epoch, 1);
}

pub async fn a_lost_worker_is_refused_until_it_registers_again(stage: Stage) {
    let mut lost = stage.stand_by(1).await;
    stage.start("order-1").await;
    let lease = lost.next().await.lease();
    stage.pass_ms(SILENT_MS as u64 + 1);
    stage.sweep_workers_silent_for_ms(SILENT_MS).await;

    let offline = RegistryError::Offline(lost.worker);
    assert_eq!(stage.beat(lost.worker, vec![lease.clone()]).await.unwrap_err(), offline);
    assert_eq!(stage.demand(lost.worker, &[TYPE], false).await.err(), Some(offline));
    assert!(stage.apply(stage.complete(&lease)).await.is_err());
    let again = stage.stand_by(1).await;
    assert!(stage.beat(again.worker, vec![]).await.is_ok());
}

pub async fn a_heartbeat_of_an_unknown_worker_is_refused(stage: Stage) {
    let stranger = kagzi_model::WorkerId(Uuid::now_v7());

    let refused = stage.beat(stranger, vec![]).await.unwrap_err();

    assert_eq!(refused, RegistryError::Unknown(stranger));
}

/// Lets a worker claim the run and vanish.
async fn crash(stage: &Stage) {
    let mut doomed = stage.stand_by(1).await;
    doomed.next().await;
    stage.pass_ms(SILENT_MS as u64 + 1);
    stage.sweep_workers_silent_for_ms(SILENT_MS).await;
}

pub async fn a_run_that_takes_its_workers_down_is_quarantined(stage: Stage) {
    let run = stage.start("order-1").await;

    for _ in 0..3 {
        crash(&stage).await;
        stage.pass_ms(60_000);
    }

    let State::Paused { by, .. } = stage.run(run).await.state else {
        panic!("{:?}", stage.run(run).await.state)
    };
    assert_eq!(&*by, "quarantine");
    let mut standing = stage.stand_by(1).await;
    let other = stage.start("order-2").await;
    assert_eq!(standing.next().await.run.id, other, "others are unaffected");
    stage.ok(stage.resume(run)).await;
    assert_eq!(stage.run(run).await.crashes, 0);
}

pub async fn progress_forgives_earlier_crashes(stage: Stage) {
    let run = stage.start("order-1").await;
    crash(&stage).await;
    stage.pass_ms(60_000);
    crash(&stage).await;
    stage.pass_ms(60_000);
    let mut careful = stage.stand_by(1).await;

    let lease = careful.next().await.lease();
    stage.ok(stage.record(&lease, "a", b"done")).await;

    assert_eq!(stage.run(run).await.crashes, 0);
    stage.ok(stage.release(&lease)).await;
}
