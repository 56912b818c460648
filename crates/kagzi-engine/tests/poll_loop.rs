//! What it costs to hand a run over that has polled for weeks: what happened since it was handed over last.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc, time::Duration};

use kagzi_engine::{Assigned, Engine, Hub, Next, Session, Settings};
use kagzi_model::{
    Command, JournalState, LeaseRef, Name, Payload, Registration, RunOptions, StartRun, StepRef, StepResult,
    Timestamp, act, journal,
};
use kagzi_store::{Assignment, LaneStats, ManualClock, MemoryStore};

const NAP_MS: i64 = 1_000;

struct Stage {
    clock: ManualClock,
    engine: Engine,
}

impl Stage {
    fn open() -> Stage {
        let clock = ManualClock::new(Timestamp::from_millis(1_900_000_000_000));
        let (shared, hub) = (Arc::new(clock.clone()), Arc::new(Hub::default()));
        let store = Arc::new(MemoryStore::open(shared.clone(), hub.clone()));
        let settings = Settings { stale_after: Duration::from_secs(3_600), ..Settings::default() };
        Stage { engine: Engine::start(store, shared, hub, settings), clock }
    }

    async fn session(&self) -> Session {
        let registration = Registration {
            namespace: Name::from("default"),
            task_queue: Name::from("q"),
            workflow_types: vec![Name::from("watch")],
            hostname: Name::from("here"),
            pid: 1,
            version: Name::from("test"),
            max_concurrent: 1,
            labels: BTreeMap::new(),
        };
        let worker = self.engine.register(Engine::new_worker_id(), registration).await.unwrap().id;
        Session::open(&self.engine, worker, vec![Name::from("watch")]).await.unwrap()
    }

    async fn start(&self) {
        let start = StartRun {
            namespace: Name::from("default"),
            id: Engine::new_run_id(),
            business_id: Some(Name::from("watch-1")),
            workflow_type: Name::from("watch"),
            task_queue: Name::from("q"),
            input: Payload::new(&b"the input"[..]),
            deadline_at: None,
            options: RunOptions::default(),
            labels: Default::default(),
            signals: Vec::new(),
        };
        self.engine.start_runs(vec![start]).await.unwrap().remove(0).unwrap();
    }

    async fn apply(&self, commands: Vec<Command>) {
        let outcomes = self.engine.store().apply(commands).await.unwrap();
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    }

    /// Hands the run over: with what the worker gets, and how many events were read for it.
    async fn hand_over(&self, assignment: Assignment) -> (Assigned, u64) {
        let stats = self.engine.store().stats();
        let before = LaneStats::get(&stats.replay_events);
        let assigned = Assigned::load(&self.engine, assignment).await.unwrap();
        (assigned, LaneStats::get(&stats.replay_events) - before)
    }
}

async fn next(session: &mut Session) -> Assignment {
    let assigned = async {
        match session.next().await {
            Next::Assigned(mut runs) => runs.pop_front().unwrap(),
            Next::Event(event) => panic!("{event:?}"),
        }
    };
    tokio::time::timeout(Duration::from_secs(60), assigned).await.expect("the run is due")
}

fn look(lease: &LeaseRef, n: u32) -> Command {
    lease.report(act::RecordStep(StepResult {
        step: StepRef { path: format!("look#{n}").into(), position: n * 2 },
        attempt: 1,
        result: Payload::new(&b"not yet"[..]),
        elapsed_ms: 0,
    }))
}

fn nap(lease: &LeaseRef, n: u32, park: bool) -> Command {
    let step = StepRef { path: format!("nap#{n}").into(), position: n * 2 + 1 };
    let duration_ms = if park { NAP_MS } else { 0 };
    lease.report(act::Sleep { step, duration_ms, park })
}

/// Rounds under one lease, so that the test needs no forty thousand commits.
async fn rounds_at_once(stage: &Stage, lease: &LeaseRef, rounds: u32) {
    let over = |n: u32| lease.report(act::SleepOver { step: format!("nap#{n}").into() });
    let commands: Vec<Command> =
        (0..rounds).flat_map(|n| [look(lease, n), nap(lease, n, false), over(n)]).collect();
    for portion in commands.chunks(999) {
        stage.apply(portion.to_vec()).await;
    }
}

/// How many events are read for each of some wake-ups after so many rounds, the first one left out.
async fn read_per_wake_up(rounds: u32) -> Vec<u64> {
    let stage = Stage::open();
    let mut session = stage.session().await;
    stage.start().await;
    let first = next(&mut session).await.lease();
    rounds_at_once(&stage, &first, rounds).await;
    stage.apply(vec![look(&first, rounds), nap(&first, rounds, true)]).await;
    let mut read = Vec::new();
    for n in rounds + 1..rounds + 6 {
        stage.clock.advance(Duration::from_millis(NAP_MS.unsigned_abs()));
        let assignment = next(&mut session).await;
        let lease = assignment.lease();
        let (assigned, events) = stage.hand_over(assignment).await;
        read.push(events);

        // What is kept is what the whole history says.
        assert_eq!(&*assigned.input.data, b"the input");
        assert_eq!(assigned.entries().count() as u32, n * 2);
        assert!(matches!(assigned.entries().last().unwrap().state, JournalState::Slept));
        if n == rounds + 5 {
            let events =
                stage.engine.store().events(&lease.namespace, lease.run, 0, 1_000_000).await.unwrap();
            assert_eq!(assigned.entries().map(Cow::into_owned).collect::<Vec<_>>(), journal(&events));
        }
        stage.apply(vec![look(&lease, n), nap(&lease, n, true)]).await;
    }
    assert!(read[0] > u64::from(rounds) * 3, "the first one reads all: {read:?}");
    read.split_off(1)
}

#[tokio::test]
async fn what_a_wake_up_reads_does_not_grow_with_the_rounds_of_a_poll_loop() {
    let (short, long) = (read_per_wake_up(2_000).await, read_per_wake_up(20_000).await);

    println!("events read per wake-up: {short:?} after 2,000 rounds, {long:?} after 20,000");
    assert_eq!(short, long);
    assert!(long.iter().all(|events| *events <= 5), "{long:?}");
}
