//! A worker with thousands of runs: its heartbeat is no turn that everybody waits for.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kagzi_engine::{Delivery, Engine, Hub, Next, Session, Settings};
use kagzi_model::{LeaseRef, Name, Payload, Registration, RunOptions, StartRun, Timestamp};
use kagzi_store::{HistogramRead, LaneStats, ManualClock, MemoryStore};

const RUNS: usize = 10_000;
/// Starts in one call, fewer than the leases that a piece of a heartbeat renews.
const STARTED_AT_ONCE: usize = 500;

fn start(n: usize) -> StartRun {
    StartRun {
        namespace: Name::from("default"),
        id: Engine::new_run_id(),
        business_id: Some(format!("order-{n}").into()),
        workflow_type: Name::from("charge"),
        task_queue: Name::from("q"),
        input: Payload::new(&b"1"[..]),
        deadline_at: None,
        options: RunOptions::default(),
        labels: Default::default(),
        signals: Vec::new(),
    }
}

#[tokio::test]
async fn a_heartbeat_of_ten_thousand_runs_is_heard_in_pieces_and_gives_back_only_what_no_piece_lists() {
    let clock = ManualClock::new(Timestamp::from_millis(1_900_000_000_000));
    let (shared, hub) = (Arc::new(clock.clone()), Arc::new(Hub::default()));
    let store = Arc::new(MemoryStore::open(shared.clone(), hub.clone()));
    let settings = Settings { stale_after: Duration::from_secs(3_600), ..Settings::default() };
    let engine = Engine::start(store, shared, hub, settings);
    let registration = Registration {
        namespace: Name::from("default"),
        task_queue: Name::from("q"),
        workflow_types: vec![Name::from("charge")],
        hostname: Name::from("here"),
        pid: 1,
        version: Name::from("test"),
        max_concurrent: RUNS as u32 + 1,
        labels: BTreeMap::new(),
    };
    let worker = engine.register(Engine::new_worker_id(), registration).await.unwrap().id;
    let mut session = Session::open(&engine, worker, vec![Name::from("charge")]).await.unwrap();
    let mut leases: Vec<LeaseRef> = Vec::new();
    for first in (0..=RUNS).step_by(STARTED_AT_ONCE) {
        let starts = (first..(first + STARTED_AT_ONCE).min(RUNS + 1)).map(start).collect();
        engine.start_runs(starts).await.unwrap();
    }
    while leases.len() <= RUNS {
        match session.next().await {
            Next::Assigned(runs) => leases.extend(runs.iter().map(|assignment| assignment.lease())),
            Next::Event(event) => panic!("{event:?}"),
        }
    }
    // Past a third of the leases, so that all are renewed.
    clock.advance(settings_lease() * 2 / 5);
    let unlisted = leases.remove(RUNS / 2);
    let stats = engine.store().stats();
    let (commits, before) = (LaneStats::get(&stats.commits), stats.batch_len.read());

    let answer = engine.beat(worker, leases.clone(), Delivery::MayBeLost).await.unwrap();

    assert_eq!(answer.lost.len(), 0);
    let pieces = LaneStats::get(&stats.commits) - commits;
    assert!(pieces >= 10, "{pieces} commits");
    let after = stats.batch_len.read();
    assert!(after.sum - before.sum >= RUNS as u64, "every lease is renewed: {before:?}, {after:?}");
    let within_bounds = |read: &HistogramRead| read.buckets.last().unwrap().1;
    assert_eq!(within_bounds(&after), after.count, "no commit renews more than a thousand: {after:?}");
    let epoch_of = async |lease: &LeaseRef| {
        let view = engine.store().run(&lease.namespace, lease.run).await.unwrap().unwrap();
        view.run.epoch
    };
    // Given back, and leased again at once.
    assert_eq!(epoch_of(&unlisted).await, unlisted.epoch + 1);
    for lease in leases.iter().step_by(997) {
        assert_eq!(epoch_of(lease).await, lease.epoch);
    }
}

fn settings_lease() -> Duration {
    Settings::default().lease
}
