//! A worker that is gone: its runs go on elsewhere, and a run that takes workers down is stopped.

use kagzi_model::{
    Author, Begin, OnFailure, Reply, RetryPolicy, RunId, RunKey, RunOptions, State, Status, Timestamp,
    WorkerId, WorkerStatus, act, limits::RELEASES_MAX,
};
use kagzi_store::{CutOff, RegistryError};
use uuid::Uuid;

use crate::{Stage, Standing, TYPE};

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
    let state = stage.run(run).await.state;
    let parked = state.parked().expect("it waits for another worker");
    assert_eq!((&parked.step, parked.attempt, parked.at), (&None, 1, Some(retry_at)));
    assert_eq!(state.error_code().map(|code| &**code), Some("WORKER_LOST"));
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

/// A run that asks for a handler, and the handler's worker.
async fn handled_run(stage: &Stage, retry: RetryPolicy) -> (RunId, Standing) {
    let worker = stage.register_for(&["clean-up"], 1).await;
    let cleaner = stage.stand_by_as(worker, &["clean-up"]).await;
    let mut start = stage.new_run("order-1");
    let on_failure = Some(OnFailure { workflow_type: "clean-up".into(), task_queue: None });
    start.options = RunOptions { retry, on_failure, ..RunOptions::default() };
    (stage.start_with(start).await, cleaner)
}

/// Beats for the handler's worker, which would otherwise be lost as well.
async fn crash_with_witness(stage: &Stage, witness: &Standing) {
    let mut doomed = stage.stand_by(1).await;
    doomed.next().await;
    stage.pass_ms(SILENT_MS as u64 + 1);
    stage.beat(witness.worker, vec![]).await.unwrap();
    stage.sweep_workers_silent_for_ms(SILENT_MS).await;
}

pub async fn a_run_whose_steps_may_be_tried_once_goes_on_when_its_worker_is_lost(stage: Stage) {
    let once = RetryPolicy { maximum_attempts: Some(1), ..RetryPolicy::default() };
    let (run, mut cleaner) = handled_run(&stage, once).await;

    crash_with_witness(&stage, &cleaner).await;
    stage.pass_ms(60_000);
    stage.beat(cleaner.worker, vec![]).await.unwrap();

    let mut heir = stage.stand_by(1).await;
    let lease = heir.next().await.lease();
    stage.ok(stage.complete(&lease)).await;
    assert_eq!(stage.run(run).await.state.status(), Status::Completed);
    assert!(cleaner.ready().is_none(), "nothing failed");
}

pub async fn an_execution_of_a_step_that_began_and_died_has_its_number(stage: Stage) {
    let run = stage.start("order-1").await;
    let mut doomed = stage.stand_by(1).await;
    let lease = doomed.next().await.lease();
    let first = stage.ok(stage.begin(&lease, "charge")).await;

    stage.pass_ms(SILENT_MS as u64 + 1);
    stage.sweep_workers_silent_for_ms(SILENT_MS).await;
    stage.pass_ms(60_000);
    let mut heir = stage.stand_by(1).await;
    let lease = heir.next().await.lease();
    let second = stage.ok(stage.begin(&lease, "charge")).await;

    assert_eq!(first, Reply::Begin(Begin::Execute { attempt: 1, timeout_ms: None }));
    assert_eq!(second, Reply::Begin(Begin::Execute { attempt: 2, timeout_ms: None }));
    let names = stage.event_names(run).await;
    assert_eq!(names[2..5], ["step_started", "step_failed", "lease_lost"]);
}

/// Says that the worker's connection broke at `since`, and answers how many runs were taken over.
async fn cut_off(stage: &Stage, id: WorkerId, since: Timestamp) -> u32 {
    stage.worker(CutOff { id, since }).await.unwrap()
}

pub async fn the_runs_of_a_worker_that_was_cut_off_go_on_elsewhere_without_backoff(stage: Stage) {
    let run = stage.start("order-1").await;
    let mut lost = stage.stand_by(1).await;
    lost.next().await;
    let broke_at = stage.now();
    stage.store.withdraw(lost.demand).await.unwrap();
    stage.pass_ms(2_000);
    let mut heir = stage.stand_by(1).await;

    assert_eq!(cut_off(&stage, lost.worker, broke_at).await, 1);

    let taken = heir.next().await.run;
    assert_eq!((taken.id, taken.epoch, taken.crashes), (run, 2, 1));
    assert_eq!(stage.told.lost(run).await.worker, lost.worker);
    let row = stage.worker_row(lost.worker).await;
    assert_eq!(row.status, WorkerStatus::Online, "it may come back, and keeps its place until it is stale");
    assert_eq!(cut_off(&stage, lost.worker, broke_at).await, 0);
}

pub async fn a_worker_that_was_heard_of_after_its_connection_broke_keeps_its_runs(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    let lease = standing.next().await.lease();
    let broke_at = stage.now();
    stage.store.withdraw(standing.demand).await.unwrap();
    stage.pass_ms(1_000);
    stage.beat(standing.worker, vec![lease]).await.unwrap();
    stage.pass_ms(1_000);

    assert_eq!(cut_off(&stage, standing.worker, broke_at).await, 0);

    assert!(matches!(stage.run(run).await.state, State::Leased(_)));
}

pub async fn a_run_given_back_without_progress_again_and_again_is_quarantined(stage: Stage) {
    let run = stage.start("order-1").await;
    let mut standing = stage.stand_by(1).await;

    for _ in 0..RELEASES_MAX {
        let lease = standing.next().await.lease();
        stage.ok(stage.release(&lease)).await;
        stage.pass_ms(60_000);
    }

    let State::Paused { by, why, .. } = stage.run(run).await.state else {
        panic!("{:?}", stage.run(run).await.state)
    };
    assert_eq!(&*by, "quarantine");
    assert!(why.contains("not now"), "{why}");
    let other = stage.start("order-2").await;
    assert_eq!(standing.next().await.run.id, other, "others are unaffected");
}

pub async fn a_quarantined_run_starts_its_handler_once_even_if_it_fails_later(stage: Stage) {
    let (run, mut cleaner) = handled_run(&stage, RetryPolicy::default()).await;

    for _ in 0..3 {
        crash_with_witness(&stage, &cleaner).await;
        stage.pass_ms(60_000);
        stage.beat(cleaner.worker, vec![]).await.unwrap();
    }
    let handler = cleaner.next().await;
    assert_eq!(handler.run.options.handler_of, Some(run));
    stage.ok(stage.complete(&handler.lease())).await;
    let reason = "given up".to_owned();
    stage
        .ok(RunKey::new(stage.namespace.clone(), run).order(Author::new("tester", reason), act::Terminate))
        .await;
    stage.settle().await;

    assert_eq!(stage.run(run).await.state.status(), Status::Failed);
    assert!(cleaner.ready().is_none());
    let names = stage.event_names(run).await;
    assert_eq!(names.iter().filter(|name| **name == "handler_started").count(), 1);
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
