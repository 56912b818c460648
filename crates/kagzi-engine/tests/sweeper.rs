//! Housekeeping on a clock that the test moves. Tokio's time is virtual, so that "a minute of real time"
//! takes none.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kagzi_engine::{Engine, Hub, RunningStep, Session, Settings};
use kagzi_model::{
    Event, EventKind, LeaseRef, Name, Payload, Registration, RetryPolicy, RunOptions, StartRun, StepRef,
    Timestamp, WorkerId, WorkerStatus, act,
};
use kagzi_store::{Clock, ManualClock, MemoryStore};

const STALE_AFTER: Duration = Duration::from_secs(10);

fn name(name: &str) -> Name {
    Name::from(name)
}

/// An engine over a store in memory. Its first ten seconds are the grace that workers have after a start.
struct Stage {
    clock: ManualClock,
    engine: Engine,
}

impl Stage {
    fn open() -> Stage {
        let clock = ManualClock::new(Timestamp::from_millis(1_900_000_000_000));
        let (shared, hub) = (Arc::new(clock.clone()), Arc::new(Hub::default()));
        let store = Arc::new(MemoryStore::open(shared.clone(), hub.clone()));
        let settings = Settings { stale_after: STALE_AFTER, ..Settings::default() };
        Stage { engine: Engine::start(store, shared, hub, settings), clock }
    }

    /// Moves the clock in the sweeper's own pace and lets it look each time.
    async fn pass(&self, duration: Duration) {
        for _ in 0..duration.as_millis() / 500 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            self.clock.advance(Duration::from_millis(500));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    async fn register(&self) -> WorkerId {
        let registration = Registration {
            namespace: name("default"),
            task_queue: name("q"),
            workflow_types: vec![name("w")],
            hostname: name("here"),
            pid: 1,
            version: name("test"),
            max_concurrent: 10,
            labels: BTreeMap::new(),
        };
        self.engine.register(Engine::new_worker_id(), registration).await.unwrap().id
    }

    /// A run that a connected worker holds.
    async fn leased(&self) -> (LeaseRef, Session) {
        let worker = self.register().await;
        let session = Session::open(&self.engine, worker, vec![name("w")]).await.unwrap();
        let start = StartRun {
            namespace: name("default"),
            id: Engine::new_run_id(),
            business_id: Some(name("b")),
            workflow_type: name("w"),
            task_queue: name("q"),
            input: Payload::new(&b""[..]),
            deadline_at: None,
            options: RunOptions::default(),
            labels: Default::default(),
            signals: Vec::new(),
        };
        let run = start.id;
        self.engine.start_runs(vec![start]).await.unwrap().remove(0).unwrap();
        (LeaseRef { namespace: name("default"), run, epoch: 1 }, session)
    }

    async fn begin(&self, lease: &LeaseRef, timeout_ms: i64) {
        let step = StepRef { path: name("charge"), position: 0 };
        let (lease, policy) = (lease.clone(), RetryPolicy::default());
        let begin =
            lease.report(act::BeginStep { step, timeout_ms: Some(timeout_ms), standard_ms: None, policy });
        self.engine.apply_one(begin).await.unwrap();
    }

    /// What a worker that reconnects says of a step that still runs.
    fn tell(&self, lease: &LeaseRef, (elapsed_ms, timeout_ms): (i64, i64)) {
        let now = self.clock.now();
        let step = RunningStep {
            path: name("charge"),
            position: 0,
            attempt: 1,
            since: now.plus_ms(-elapsed_ms),
            told_at: now,
            epoch: lease.epoch,
            namespace: lease.namespace.clone(),
            timeout_ms: Some(timeout_ms),
            policy: RetryPolicy::default(),
        };
        self.engine.step_started(lease.run, step);
    }

    /// The codes of the attempts that failed.
    async fn failed(&self, lease: &LeaseRef) -> Vec<Name> {
        let events = self.engine.store().events(&lease.namespace, lease.run, 0, 100).await.unwrap();
        let code = |event: Event| match event.kind {
            EventKind::StepFailed { failure, .. } => Some(failure.code),
            _other => None,
        };
        events.into_iter().filter_map(code).collect()
    }
}

/// Waits for an event, for a virtual minute at most; the injected clock stands still meanwhile.
async fn eventually(what: &str, mut look: impl AsyncFnMut() -> bool) {
    for _ in 0..60_000 {
        if look().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("never: {what}");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_stood_still_does_not_mean_that_the_server_was_away() {
    let stage = Stage::open();
    stage.pass(STALE_AFTER).await;
    let worker = stage.register().await;

    tokio::time::sleep(Duration::from_secs(60)).await;
    stage.clock.advance(STALE_AFTER + Duration::from_secs(1));

    let registry = stage.engine.store();
    eventually("the silent worker is lost at once", async || {
        let seen = registry.worker_by_id(&name("default"), worker).await.unwrap();
        seen.is_some_and(|seen| seen.worker.status == WorkerStatus::Offline)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_step_that_began_after_the_start_times_out_within_the_grace() {
    let stage = Stage::open();
    let (lease, _session) = stage.leased().await;
    stage.begin(&lease, 2_000).await;

    stage.pass(Duration::from_secs(1)).await;
    assert_eq!(stage.failed(&lease).await, [], "not before its time");
    stage.pass(Duration::from_secs(2)).await;

    assert_eq!(stage.failed(&lease).await, [name("TIMED_OUT")]);
}

/// A step that began before the server was away, and whose time passed since. Whether its worker says
/// afterwards that it still runs decides.
async fn step_of_before(told_again: bool) -> Vec<Name> {
    let stage = Stage::open();
    stage.pass(STALE_AFTER).await;
    let (lease, _session) = stage.leased().await;
    stage.begin(&lease, 3_000).await;
    tokio::time::advance(Duration::from_secs(60)).await;
    stage.pass(Duration::from_secs(1)).await;

    if told_again {
        stage.tell(&lease, (1_000, 3_000));
    }
    stage.pass(Duration::from_secs(3)).await;

    stage.failed(&lease).await
}

#[tokio::test(start_paused = true)]
async fn a_step_that_its_worker_tells_again_times_out_within_the_grace() {
    assert_eq!(step_of_before(true).await, [name("TIMED_OUT")]);
}

#[tokio::test(start_paused = true)]
async fn a_step_of_which_nothing_was_heard_yet_has_the_grace() {
    // Its worker may have finished it while the server was away, and be about to say so.
    assert_eq!(step_of_before(false).await, []);
}
