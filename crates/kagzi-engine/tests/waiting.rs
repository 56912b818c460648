//! Whoever waits for the end of a run is told at once that it waits for a person instead.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kagzi_engine::{Engine, Hub, Next, Session, Settings};
use kagzi_model::{
    Author, LeaseRef, Name, Payload, Registration, RunId, RunKey, RunOptions, StartRun, State, Status,
    Timestamp, act,
};
use kagzi_store::{ManualClock, MemoryStore, RunView};

/// The clock of the server stands still: no timeout of a wait ever passes.
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

/// Somebody who waits, and does so by now.
async fn waiting(engine: &Engine, run: RunId) -> tokio::task::JoinHandle<RunView> {
    let engine = engine.clone();
    let wait = tokio::spawn(async move {
        engine.wait(&Name::from("default"), run, Duration::from_secs(60)).await.unwrap()
    });
    // One thread: it runs until it has nothing more to do.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!wait.is_finished());
    wait
}

async fn told(wait: tokio::task::JoinHandle<RunView>) -> State {
    tokio::time::timeout(Duration::from_secs(20), wait).await.expect("it is told").unwrap().run.state
}

#[tokio::test]
async fn a_wait_for_a_run_that_is_paused_meanwhile_ends_and_the_next_one_ends_with_the_run() {
    let engine = engine();
    let mut session = session(&engine).await;
    let run = start(&engine).await;
    let lease = next(&mut session).await;
    let wait = waiting(&engine, run).await;

    engine.report(&lease, act::Block { message: "the code has changed".into() }).await.unwrap();

    let state = told(wait).await;
    assert!(matches!(state, State::Paused { .. }), "{state:?}");
    // Whoever waits on, waits for the end: the pause is not told again and again.
    let wait = waiting(&engine, run).await;
    let key = RunKey::new(Name::from("default"), run);
    engine.order(key, Author::new("ada", ""), act::Resume { request: None }).await.unwrap();
    let lease = next(&mut session).await;
    let complete = act::Complete { output: Payload::new(&b"2"[..]), steps: Vec::new() };
    engine.report(&lease, complete).await.unwrap();
    assert_eq!(told(wait).await.status(), Status::Completed);
}
