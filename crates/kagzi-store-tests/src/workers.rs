//! The registry: who is there, and how they leave.

use kagzi_model::{FAILURE_HANDLER, Registration, State, WorkerStatus};
use kagzi_store::{Beat, Deregister, Drain, Offline, Register, RegistryError, SweepKind};

use crate::{LEASE_MS, Stage, TYPE};

pub async fn a_registered_worker_reads_back_as_it_came(stage: Stage) {
    let registration = stage.registration(&[TYPE, "refund"], 7);
    let id = kagzi_model::WorkerId(uuid::Uuid::now_v7());

    let command = Register { id, registration: registration.clone() };
    let worker = stage.worker(command).await.unwrap();

    assert_eq!(worker.registration, registration);
    assert_eq!(stage.worker_row(id).await, worker);
    assert_eq!((worker.status, worker.registered_at), (WorkerStatus::Online, stage.now()));
}

pub async fn a_draining_worker_gets_nothing_new_and_finishes_what_it_has(stage: Stage) {
    let mut standing = stage.stand_by(10).await;
    stage.start("order-1").await;
    let lease = standing.next().await.lease();

    stage.worker(Drain { id: standing.worker }).await.unwrap();
    let waiting = stage.start("order-2").await;
    stage.settle().await;

    assert!(standing.ready().is_none());
    assert!(matches!(stage.run(waiting).await.state, State::Ready { .. }));
    let refused = stage.demand(standing.worker, &[TYPE], false).await.err();
    assert_eq!(refused, Some(RegistryError::Draining(standing.worker)));
    let answer = stage.beat(standing.worker, vec![lease.clone()]).await.unwrap();
    assert_eq!((answer.status, answer.lost.len()), (WorkerStatus::Draining, 0));
    stage.ok(stage.complete(&lease)).await;
}

pub async fn a_worker_that_leaves_gives_its_runs_back_without_counting_as_an_attempt(stage: Stage) {
    let mut leaving = stage.stand_by(2).await;
    let runs = [stage.start("order-1").await, stage.start("order-2").await];
    let stale = leaving.next().await.lease();
    leaving.next().await;
    let mut heir = stage.stand_by(2).await;

    let released = stage.worker(Deregister { id: leaving.worker }).await.unwrap();

    assert_eq!(released, 2);
    let row = stage.worker_row(leaving.worker).await;
    assert_eq!((row.status, row.deregistered_at), (WorkerStatus::Offline, Some(stage.now())));
    let mut taken = [heir.next().await.run, heir.next().await.run];
    taken.sort_by_key(|run| run.id);
    assert_eq!(taken.each_ref().map(|run| run.id), runs);
    assert!(taken.iter().all(|run| (run.attempts, run.crashes, run.epoch) == (0, 0, 2)));
    assert!(stage.apply(stage.complete(&stale)).await.is_err());
}

pub async fn a_worker_id_is_of_no_use_to_another_namespace_or_queue(stage: Stage) {
    let mut standing = stage.stand_by(2).await;
    let held = stage.start("order-1").await;
    standing.next().await;
    let before = stage.worker_row(standing.worker).await;
    let own = before.registration.clone();
    stage.pass_ms(1_000);

    for (namespace, task_queue) in
        [("other".into(), own.task_queue.clone()), (own.namespace.clone(), "other".into())]
    {
        let greeting = Beat {
            id: standing.worker,
            of: Some((namespace.clone(), task_queue.clone())),
            runs: Vec::new(),
            lease_ms: LEASE_MS,
            unlisted_after_ms: Some(0),
            reconnected: true,
            listed_before: Vec::new(),
        };
        let greeted = stage.beat_with(greeting).await.unwrap_err();
        let registration = Registration { namespace, task_queue, ..own.clone() };
        let register = Register { id: standing.worker, registration };
        let registered = stage.worker(register).await.unwrap_err();

        let taken = RegistryError::Taken(standing.worker);
        assert_eq!((greeted, registered), (taken.clone(), taken));
    }
    assert_eq!(stage.worker_row(standing.worker).await, before);
    assert!(matches!(stage.run(held).await.state, State::Leased(_)));
    let next = stage.start("order-2").await;
    assert_eq!(standing.next().await.run.id, next, "its stream still stands by");
}

pub async fn a_run_that_a_reconnect_gives_back_is_not_leased_into_the_former_stream(stage: Stage) {
    let mut former = stage.stand_by(2).await;
    let run = stage.start("order-1").await;
    former.next().await;
    let greeting = Beat {
        id: former.worker,
        of: Some((stage.namespace.clone(), "default".into())),
        runs: Vec::new(),
        lease_ms: LEASE_MS,
        unlisted_after_ms: Some(0),
        reconnected: true,
        listed_before: Vec::new(),
    };

    stage.beat_with(greeting).await.unwrap();
    stage.settle().await;

    assert!(matches!(stage.run(run).await.state, State::Ready { .. }), "nobody reads the former stream");
    assert!(former.let_go());
    let mut fresh = stage.stand_by_as(former.worker, &[TYPE]).await;
    assert_eq!(fresh.next().await.run.id, run);
}

pub async fn leaving_twice_is_leaving_once(stage: Stage) {
    let worker = stage.register(1).await;

    for _ in 0..2 {
        let released = stage.worker(Deregister { id: worker }).await.unwrap();
        assert_eq!(released, 0);
    }
    let unknown = kagzi_model::WorkerId(uuid::Uuid::now_v7());
    let refused = stage.worker(Deregister { id: unknown }).await.unwrap_err();
    assert_eq!(refused, RegistryError::Unknown(unknown));
}

pub async fn draining_needs_a_worker_that_is_there(stage: Stage) {
    let worker = stage.register(1).await;
    stage.worker(Deregister { id: worker }).await.unwrap();
    let unknown = kagzi_model::WorkerId(uuid::Uuid::now_v7());

    let offline = stage.worker(Drain { id: worker }).await.unwrap_err();
    let missing = stage.worker(Drain { id: unknown }).await.unwrap_err();

    assert_eq!((offline, missing), (RegistryError::Offline(worker), RegistryError::Unknown(unknown)));
}

/// The answer to a registration may be lost, and the worker then sends it again.
pub async fn registering_again_does_not_forget_what_the_worker_holds(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    stage.start("order-1").await;
    standing.next().await;
    let registration = stage.registration(&[TYPE], 1);

    stage.worker(Register { id: standing.worker, registration }).await.unwrap();
    stage.start("order-2").await;
    stage.settle().await;

    assert_eq!(stage.active(standing.worker).await, 1);
    assert!(standing.ready().is_none());
}

pub async fn completed_and_failed_runs_are_counted_truly(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    for number in 0..5 {
        stage.start(&format!("order-{number}")).await;
    }

    for number in 0..5 {
        let lease = standing.next().await.lease();
        let end = if number < 3 { stage.complete(&lease) } else { stage.fail(&lease) };
        stage.ok(end.clone()).await;
        stage.ok(end).await;
    }
    let cancelled = stage.start("order-5").await;
    standing.next().await;
    stage.ok(stage.cancel(cancelled)).await;

    // Where servers share a database, its row is written with the heartbeats alone.
    stage.beat(standing.worker, vec![]).await.unwrap();
    let row = stage.worker_row(standing.worker).await;
    assert_eq!((row.completed_total, row.failed_total), (3, 2));
    assert_eq!(stage.active(standing.worker).await, 0);
}

pub async fn a_worker_taken_offline_loses_its_runs_at_once_and_is_told(stage: Stage) {
    let mut standing = stage.stand_by(2).await;
    let run = stage.start("order-1").await;
    let stale = standing.next().await.lease();
    let mut heir = stage.stand_by(1).await;

    let released = stage.worker(Offline { id: standing.worker }).await.unwrap();

    assert_eq!(released, 1);
    let taken = heir.next().await.run;
    assert_eq!((taken.id, taken.attempts, taken.crashes, taken.epoch), (run, 0, 0, 2));
    let told = stage.told.lost(run).await;
    assert_eq!((told.worker, told.epoch), (standing.worker, 1));
    assert!(told.why.contains("operator"), "{}", told.why);
    assert!(stage.apply(stage.complete(&stale)).await.is_err());
    assert_eq!(stage.worker_row(standing.worker).await.status, WorkerStatus::Offline);
    let refused = stage.beat(standing.worker, vec![]).await.unwrap_err();
    assert_eq!(refused, RegistryError::Offline(standing.worker));
}

pub async fn workers_long_offline_are_forgotten_and_others_are_not(stage: Stage) {
    let gone = stage.register(1).await;
    stage.worker(Deregister { id: gone }).await.unwrap();
    stage.pass_ms(1_000);
    let lately = stage.register(1).await;
    stage.worker(Deregister { id: lately }).await.unwrap();
    let online = stage.register(1).await;

    stage.sweep(SweepKind::OfflineWorkers { before: stage.now() }).await;

    let known = async |id| stage.store.worker_by_id(&stage.namespace, id).await.unwrap().is_some();
    assert_eq!([known(gone).await, known(lately).await, known(online).await], [false, true, true]);
}

pub async fn the_queue_of_a_forgotten_failure_handler_is_remembered(stage: Stage) {
    let handler = stage.register_for(&[FAILURE_HANDLER], 1).await;
    stage.worker(Deregister { id: handler }).await.unwrap();
    stage.pass_ms(1_000);

    stage.sweep(SweepKind::OfflineWorkers { before: stage.now() }).await;

    assert_eq!(stage.store.worker_by_id(&stage.namespace, handler).await.unwrap(), None);
    let mut standing = stage.stand_by(1).await;
    let run = stage.start("order-1").await;
    stage.ok(stage.fail(&standing.next().await.lease())).await;
    let business_id = format!("system-failure-{run}").into();
    assert!(stage.store.run_by_business(&stage.namespace, &business_id).await.unwrap().is_some());
}
