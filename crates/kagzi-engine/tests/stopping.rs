//! A connection that breaks because the server stops says nothing of the worker at its other end.

use std::{collections::BTreeMap, sync::Arc};

use kagzi_engine::{Engine, Hub, Next, Session, Settings};
use kagzi_model::{LeaseRef, Name, Payload, Registration, RunId, RunOptions, StartRun, Timestamp};
use kagzi_store::{ManualClock, MemoryStore};

/// The clock of the server stands still, so no silence counts; the grace is time of the process.
fn engine() -> Engine {
    let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_900_000_000_000)));
    let hub = Arc::new(Hub::default());
    let store = Arc::new(MemoryStore::open(clock.clone(), hub.clone()));
    Engine::start(store, clock, hub, Settings::default())
}

async fn session(engine: &Engine) -> Session {
    let registration = Registration {
        namespace: Name::from("default"),
        task_queue: Name::from("q"),
        workflow_types: vec![Name::from("charge")],
        hostname: Name::from("here"),
        pid: 1,
        version: Name::from("test"),
        max_concurrent: 1,
        labels: BTreeMap::new(),
    };
    let worker = engine.register(Engine::new_worker_id(), registration).await.unwrap().id;
    Session::open(engine, worker, vec![Name::from("charge")]).await.unwrap()
}

async fn start(engine: &Engine) -> RunId {
    let start = StartRun {
        namespace: Name::from("default"),
        id: Engine::new_run_id(),
        business_id: None,
        workflow_type: Name::from("charge"),
        task_queue: Name::from("q"),
        input: Payload::new(&b"1"[..]),
        deadline_at: None,
        options: RunOptions::default(),
        labels: Default::default(),
        signals: Vec::new(),
    };
    let id = start.id;
    engine.start_runs(vec![start]).await.unwrap().remove(0).unwrap();
    id
}

async fn next(session: &mut Session) -> LeaseRef {
    match session.next().await {
        Next::Assigned(mut runs) => runs.pop_front().unwrap().lease(),
        Next::Event(event) => panic!("{event:?}"),
    }
}

/// Whether the run of a worker whose connection breaks is still its own when the grace is long over.
async fn keeps_its_run(server_stops: bool) -> bool {
    let engine = engine();
    let mut session = session(&engine).await;
    let run = start(&engine).await;
    next(&mut session).await;

    if server_stops {
        engine.prepare_to_stop();
    }
    drop(session);
    // Time is paused: it passes as soon as nobody has anything to do.
    tokio::time::sleep(Settings::default().reconnect_grace * 3).await;

    let view = engine.store().run(&Name::from("default"), run).await.unwrap().unwrap();
    view.run.lease().is_some()
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_left_by_a_server_which_stops_keeps_its_runs_and_one_that_breaks_off_does_not() {
    assert!(!keeps_its_run(false).await, "its connection broke, and it did not come back");
    assert!(keeps_its_run(true).await, "the server broke it");
}
