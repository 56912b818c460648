//! Suspends, leaps and freezes: the wall clock and steady time are moved apart, and Tokio's time is virtual,
//! so that hours take no time.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use kagzi_engine::{Delivery, Engine, Hub, Session, Settings};
use kagzi_model::{
    Labels, LeaseRef, Name, Payload, Reason, Registration, RetryPolicy, Run, RunId, RunOptions, StartRun,
    State, StepRef, Timestamp, WorkerId, act,
    schedule::{NewSchedule, Overlap, Plan, ScheduleCommand, ScheduleKey, ScheduleRequest, Timing},
};
use kagzi_store::{Direction, MemoryStore, PageRequest, RunFilter, SystemClock, TimeSource};
use parking_lot::Mutex;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const START: Timestamp = Timestamp::from_millis(1_900_000_000_000);

fn name(name: &str) -> Name {
    Name::from(name)
}

/// The two clocks of a machine, which the test moves apart.
#[derive(Clone)]
struct Machine(Arc<Mutex<(Timestamp, Duration)>>);

impl TimeSource for Machine {
    fn wall(&self) -> Timestamp {
        self.0.lock().0
    }

    fn steady(&self) -> Duration {
        self.0.lock().1
    }
}

impl Machine {
    fn pass(&self, by: Duration) {
        let mut both = self.0.lock();
        *both = (both.0 + by, both.1 + by);
    }

    fn set_wall(&self, by: Leap) {
        let wall = &mut self.0.lock().0;
        *wall = match by {
            Leap::Ahead(by) => *wall + by,
            Leap::Back(by) => Timestamp(wall.0 - i64::try_from(by.as_micros()).unwrap()),
        };
    }
}

#[derive(Clone, Copy, Debug)]
enum Leap {
    /// The clock was set, or the machine was suspended: both look the same.
    Ahead(Duration),
    Back(Duration),
}

const LEAPS: [Leap; 3] = [Leap::Ahead(HOUR), Leap::Back(HOUR), Leap::Ahead(Duration::from_secs(8 * 3600))];

struct Stage {
    machine: Machine,
    engine: Engine,
}

impl Stage {
    fn open() -> Stage {
        let machine = Machine(Arc::new(Mutex::new((START, SECOND))));
        let (shared, hub) = (Arc::new(SystemClock::over(machine.clone())), Arc::new(Hub::default()));
        let store = Arc::new(MemoryStore::open(shared.clone(), hub.clone()));
        Stage { engine: Engine::start(store, shared, hub, Settings::default()), machine }
    }

    /// Lets time pass for everybody.
    async fn pass(&self, duration: Duration) {
        self.pass_beating(duration, &[]).await;
    }

    /// The same, and workers say that they live, every second.
    async fn pass_beating(&self, duration: Duration, living: &[(WorkerId, LeaseRef)]) {
        for half_second in 0..duration.as_millis() / 500 {
            self.machine.pass(SECOND / 2);
            tokio::time::sleep(SECOND / 2).await;
            if half_second % 2 == 1 {
                for (worker, lease) in living {
                    self.engine.beat(*worker, vec![lease.clone()], Delivery::Ordered).await.unwrap();
                }
            }
        }
    }

    async fn lease(&self) -> (WorkerId, LeaseRef, Session) {
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
        let worker = self.engine.register(Engine::new_worker_id(), registration).await.unwrap().id;
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
        (worker, LeaseRef { namespace: name("default"), run, epoch: 1 }, session)
    }

    async fn held(&self, lease: &LeaseRef) -> bool {
        let run = self.run(lease.run).await;
        matches!(run.state, State::Leased(_)) && run.epoch == lease.epoch
    }

    async fn run(&self, id: RunId) -> Run {
        self.engine.read_run(&name("default"), id).await.unwrap().run
    }

    /// A schedule that fires once a day, at this time of the day.
    async fn schedule_daily(&self, at: Timestamp) {
        let day_ms = 24 * 3_600_000;
        let plan = Plan {
            timing: Timing::Interval { every_ms: day_ms, phase_ms: at.0 / 1_000 % day_ms },
            workflow_type: name("w"),
            task_queue: name("q"),
            options: RunOptions::default(),
            labels: Labels::default(),
            overlap: Overlap::Allow,
            jitter_ms: 0,
            max_catchup: 100,
        };
        let (uid, input) = (Engine::new_run_id().0, Payload::new(&b""[..]));
        let command = ScheduleCommand::Create(Box::new(NewSchedule { uid, plan, input, paused: None }));
        let key = ScheduleKey { namespace: name("default"), id: name("daily") };
        self.engine.schedule(ScheduleRequest { key, command }).await.unwrap();
    }

    async fn scheduled(&self) -> usize {
        let filter = RunFilter { schedule: Some(name("daily")), ..RunFilter::default() };
        let page = PageRequest { from: None, direction: Direction::Next, limit: 10 };
        self.engine.store().runs(&name("default"), &filter, &page).await.unwrap().rows.len()
    }
}

#[tokio::test(start_paused = true)]
async fn a_living_worker_keeps_its_lease_whichever_way_the_clock_leaps() {
    for leap in LEAPS {
        let stage = Stage::open();
        stage.pass(MINUTE).await;
        let (worker, lease, _session) = stage.lease().await;
        let living = [(worker, lease.clone())];
        stage.pass_beating(MINUTE, &living).await;

        stage.machine.set_wall(leap);
        stage.pass_beating(2 * MINUTE, &living).await;

        assert!(stage.held(&lease).await, "{leap:?}: {:?}", stage.run(lease.run).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_living_worker_keeps_its_lease_over_a_freeze_of_a_minute() {
    let stage = Stage::open();
    stage.pass(MINUTE).await;
    let (worker, lease, _session) = stage.lease().await;
    let living = [(worker, lease.clone())];
    stage.pass_beating(MINUTE, &living).await;

    // Nobody runs meanwhile, and the heartbeats of the minute are still to be read.
    stage.machine.pass(MINUTE);
    tokio::time::advance(MINUTE).await;
    stage.pass(SECOND).await;
    stage.pass_beating(MINUTE, &living).await;

    assert!(stage.held(&lease).await, "{:?}", stage.run(lease.run).await);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_died_is_noticed_after_a_leap_too() {
    for leap in LEAPS {
        let stage = Stage::open();
        stage.pass(MINUTE).await;
        let (_worker, lease, _session) = stage.lease().await;

        stage.machine.set_wall(leap);
        stage.pass(MINUTE).await;

        assert!(!stage.held(&lease).await, "{leap:?}: its silence lasted a minute");
    }
}

#[tokio::test(start_paused = true)]
async fn a_schedule_fires_when_the_wall_clock_shows_its_time_whichever_way_it_leapt() {
    for leap in LEAPS {
        let stage = Stage::open();
        stage.pass(MINUTE).await;
        stage.machine.set_wall(leap);
        let fires_at = stage.machine.wall() + 10 * MINUTE;
        // Within a minute of the leap it goes by the new time.
        stage.pass(MINUTE).await;
        stage.schedule_daily(fires_at).await;

        stage.pass(9 * MINUTE - SECOND).await;
        assert_eq!(stage.scheduled().await, 0, "{leap:?}: not early");
        stage.pass(2 * SECOND).await;

        assert_eq!(stage.scheduled().await, 1, "{leap:?}: on time");
    }
}

#[tokio::test(start_paused = true)]
async fn a_schedule_does_not_fire_again_for_times_that_come_twice() {
    let stage = Stage::open();
    stage.schedule_daily(START + 5 * MINUTE).await;
    stage.pass(6 * MINUTE).await;
    assert_eq!(stage.scheduled().await, 1);

    stage.machine.set_wall(Leap::Back(HOUR));
    stage.pass(2 * HOUR).await;

    assert_eq!(stage.scheduled().await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_sleep_is_neither_cut_short_nor_held_up_by_a_clock_that_was_set_back() {
    let stage = Stage::open();
    stage.pass(MINUTE).await;
    let (worker, lease, _session) = stage.lease().await;
    stage.machine.set_wall(Leap::Back(HOUR));
    stage.pass_beating(2 * SECOND, &[(worker, lease.clone())]).await;
    let nap = StepRef { path: name("nap"), position: 0 };
    let sleep = lease.report(act::Sleep { step: nap, duration_ms: 600_000, park: true });
    stage.engine.apply_one(sleep).await.unwrap();

    stage.pass_beating(10 * MINUTE, &[(worker, lease.clone())]).await;
    assert_eq!(stage.run(lease.run).await.state.reason(), Some(Reason::Timer), "not early");
    stage.pass_beating(2 * MINUTE, &[(worker, lease.clone())]).await;

    let run = stage.run(lease.run).await;
    assert!(matches!(run.state, State::Leased(_)), "late by a ninth at most: {run:?}");
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_a_caller_lasts_as_long_as_it_said_whatever_the_clock_does() {
    for leap in LEAPS {
        let stage = Stage::open();
        let (_worker, lease, _session) = stage.lease().await;
        let engine = stage.engine.clone();
        let waiting = tokio::spawn(async move {
            let began = tokio::time::Instant::now();
            engine.wait(&name("default"), lease.run, 5 * SECOND).await.unwrap();
            began.elapsed()
        });
        stage.pass(SECOND).await;

        stage.machine.set_wall(leap);
        stage.pass(10 * SECOND).await;

        let waited = waiting.await.unwrap();
        assert!((5 * SECOND..6 * SECOND).contains(&waited), "{leap:?}: {waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_has_its_whole_time_over_a_leap_and_not_more() {
    for leap in LEAPS {
        let stage = Stage::open();
        stage.pass(MINUTE).await;
        let (worker, lease, _session) = stage.lease().await;
        let living = [(worker, lease.clone())];
        let step = StepRef { path: name("slow"), position: 0 };
        let policy = RetryPolicy::default();
        let begin =
            lease.report(act::BeginStep { step, timeout_ms: Some(600_000), standard_ms: None, policy });
        stage.engine.apply_one(begin).await.unwrap();
        stage.pass_beating(MINUTE, &living).await;

        stage.machine.set_wall(leap);
        stage.pass_beating(8 * MINUTE, &living).await;
        assert!(stage.held(&lease).await, "{leap:?}: it has run for nine of its ten minutes");
        stage.pass_beating(3 * MINUTE, &living).await;

        assert!(!stage.held(&lease).await, "{leap:?}: it ran longer than it may");
    }
}
