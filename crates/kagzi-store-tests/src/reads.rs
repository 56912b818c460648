//! Finding one run or one worker.

use kagzi_model::{RunId, WorkerStatus, act};
use kagzi_store::SweepKind;
use uuid::Uuid;

use crate::{
    Stage, TYPE,
    replay_law::park,
    signals::{signal, wait},
};

pub async fn a_run_is_found_by_its_id_and_its_business_id(stage: Stage) {
    let run = stage.start("order-1").await;
    stage.start("order-2").await;

    let view = stage.store.run(&stage.namespace, run).await.unwrap().unwrap();
    let by_business = stage.store.run_by_business(&stage.namespace, &"order-1".into()).await.unwrap();
    let missing = stage.store.run_by_business(&stage.namespace, &"order-3".into()).await.unwrap();

    assert_eq!((view.run.id, view.run.business_id.as_deref()), (run, Some("order-1")));
    assert_eq!((view.input.unwrap().data, view.output), ("input of order-1".into(), None));
    assert_eq!((by_business, missing), (Some(run), None));
    let unknown = stage.store.run(&stage.namespace, RunId(Uuid::now_v7())).await.unwrap();
    assert_eq!(unknown, None);
}

pub async fn a_run_is_found_by_the_first_digits_of_its_id(stage: Stage) {
    let digits = |id: &RunId| id.0.simple().to_string();
    let mut starts = [stage.new_run("order-1"), stage.new_run("order-2"), stage.new_run("order-3")];
    // Two that share twelve digits, and one that is different from the first.
    starts[0].id =
        RunId(Uuid::from_u128(0xabcd_ef01_2345 << 80 | u128::from(Uuid::new_v4().as_u64_pair().0)));
    starts[1].id =
        RunId(Uuid::from_u128(0xabcd_ef01_2345 << 80 | u128::from(Uuid::new_v4().as_u64_pair().0)));
    starts[2].id =
        RunId(Uuid::from_u128(0x1234_0000_0000 << 80 | u128::from(Uuid::new_v4().as_u64_pair().0)));
    let ids = starts.each_ref().map(|start| start.id);
    for start in starts {
        stage.start_with(start).await;
    }

    let find = async |prefix: &str| stage.store.runs_by_prefix(&stage.namespace, prefix).await.unwrap();

    assert_eq!(find("1234").await, [ids[2]]);
    assert_eq!(find(&digits(&ids[0])).await, [ids[0]]);
    assert_eq!(find("abcdef").await.len(), 2);
    assert!(find("ffff").await.is_empty());
    assert!(find("not-hexadecimal").await.is_empty());
    assert!(find(&format!("{}0", digits(&ids[0]))).await.is_empty());
}

pub async fn a_worker_is_found_by_the_first_digits_of_its_id(stage: Stage) {
    let worker = stage.register_for(&[TYPE], 1).await;
    let digits = worker.0.simple().to_string();

    let whole = stage.store.workers_by_prefix(&stage.namespace, &digits).await.unwrap();
    let part = stage.store.workers_by_prefix(&stage.namespace, &digits[..8]).await.unwrap();
    let none = stage.store.workers_by_prefix(&stage.namespace, "ffffffff").await.unwrap();

    assert_eq!((whole, part, none), (vec![worker], vec![worker], vec![]));
}

pub async fn reading_works_at_all(stage: Stage) {
    stage.store.ping().await.unwrap();
    assert!(!stage.store.describe().is_empty());
}

pub async fn a_census_counts_ready_waiting_and_leased_runs_and_workers(stage: Stage) {
    stage.start("order-1").await;
    stage.start("order-2").await;
    let since = stage.now();
    stage.pass_ms(5_000);
    let mut standing = stage.stand_by(1).await;
    let lease = standing.next().await.lease();
    let counted = async || {
        let census = stage.store.census(stage.now()).await.unwrap();
        let queues: Vec<_> =
            census.queues.into_iter().filter(|queue| queue.namespace == stage.namespace).collect();
        let workers: Vec<_> =
            census.workers.into_iter().filter(|worker| worker.namespace == stage.namespace).collect();
        (queues, workers)
    };

    let (queues, workers) = counted().await;
    assert_eq!((queues.len(), queues[0].ready, queues[0].waiting, queues[0].leased), (1, 1, 0, 1));
    assert_eq!(queues[0].oldest_ready_at, Some(since));
    assert_eq!((workers.len(), workers[0].status, workers[0].count), (1, WorkerStatus::Online, 1));

    stage.ok(stage.sleep(&lease, "nap", 60_000)).await;
    stage.ok(lease.report(act::Park { waits: Vec::new(), wake: Default::default() })).await;
    standing.next().await;
    let (queues, _) = counted().await;
    assert_eq!((queues[0].ready, queues[0].waiting, queues[0].leased), (0, 1, 1));
    assert_eq!(queues[0].oldest_ready_at, None);
}

pub async fn parked_runs_are_counted_by_what_they_wait_for(stage: Stage) {
    let mut standing = stage.stand_by(1).await;
    let counted = async || {
        let waits = stage.store.waits().await.unwrap().into_iter();
        let own = waits.filter(|waits| waits.namespace == stage.namespace);
        let mut own: Vec<_> = own.map(|waits| (waits.reason.to_string(), waits.count)).collect();
        own.sort();
        own
    };
    assert_eq!(counted().await, []);
    stage.start("sleeps").await;
    let lease = standing.next().await.lease();
    stage.ok(stage.sleep(&lease, "nap", 60_000)).await;
    let mut waiting = Vec::new();
    for name in ["waits", "waits too"] {
        waiting.push(stage.start(name).await);
        let lease = standing.next().await.lease();
        stage.ok(wait(&lease, "ok", "approved", None)).await;
        stage.ok(park(&lease, &["ok"])).await;
    }
    // Not a wait: it has failed, and stands in the same index.
    stage.start("fails").await;
    let lease = standing.next().await.lease();
    stage.ok(stage.fail(&lease)).await;

    let named = |reason: &str, count| (reason.to_owned(), count);
    assert_eq!(counted().await, [named("signal", 2), named("timer", 1)]);
    stage.ok(signal(&stage, waiting[0], "approved", "ada")).await;
    assert_eq!(counted().await, [named("signal", 1), named("timer", 1)]);
}

pub async fn a_probe_goes_through_the_write_path_and_changes_nothing(stage: Stage) {
    let run = stage.start("order-1").await;
    let before = stage.run(run).await;

    stage.sweep(SweepKind::Probe {}).await;

    assert_eq!(stage.run(run).await, before);
}
