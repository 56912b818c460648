//! A store on a stage: a clock that we move, an observer that remembers, a namespace of our own.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use kagzi_model::{
    Author, Command, ControlRejection, Event, Failure, Gate, GateCommand, GateKey, LeaseRef, Name, Namespace,
    NamespaceCommand, Payload, Registration, Reply, RetryPolicy, Run, RunId, RunKey, RunOptions, StartRun,
    Started, StepRef, StepResult, Timestamp, Worker, WorkerId, act,
};
use kagzi_store::{
    Assignment, Beat, BeatAnswer, ChangeGate, ChangeNamespace, Clock, Demand, ManualClock, Outcome, Register,
    RegistryError, Request, Store, SweepKind,
};
use tokio::sync::mpsc::{UnboundedReceiver, error::TryRecvError, unbounded_channel};
use uuid::Uuid;

use crate::{Recorder, StoreFactory};

/// How long a check waits for something that must come. Only a hanging store ever waits this long.
pub const WAIT: Duration = Duration::from_secs(30);
/// The length of a lease on the stage.
pub const LEASE_MS: i64 = 30_000;
/// The workflow type that workers of the stage register, unless told otherwise.
pub const TYPE: &str = "greet";
const QUEUE: &str = "default";

static NEXT_DEMAND: AtomicU64 = AtomicU64::new(1);

/// Awaits what must come, and says what did not.
pub async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(WAIT, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {WAIT:?} in vain for {what}"),
    }
}

/// One open store with everything a check needs.
pub struct Stage {
    pub store: Arc<Store>,
    pub clock: ManualClock,
    pub told: Arc<Recorder>,
    pub namespace: Name,
    factory: Arc<dyn StoreFactory>,
}

/// A worker that stands by.
pub struct Standing {
    pub worker: WorkerId,
    pub demand: u64,
    deliveries: UnboundedReceiver<Assignment>,
}

impl Stage {
    /// Opens the factory's store at a fixed time.
    pub async fn open(factory: impl StoreFactory) -> Self {
        let factory: Arc<dyn StoreFactory> = Arc::new(factory);
        let clock = ManualClock::new(Timestamp::from_millis(1_900_000_000_000));
        let told = Arc::new(Recorder::default());
        let store = factory.open(Arc::new(clock.clone()), told.clone()).await;
        let namespace = Name::from(format!("test-{}", Uuid::new_v4().simple()));
        Stage { store, clock, told, namespace, factory }
    }

    /// Closes the store and opens it again, as after a restart.
    pub async fn reopen(&mut self) {
        self.store.close().await;
        self.told = Arc::new(Recorder::default());
        self.store = self.factory.open(Arc::new(self.clock.clone()), self.told.clone()).await;
    }

    /// The same on a machine whose clock shows another time.
    pub async fn reopen_at(&mut self, now: Timestamp) {
        self.clock = ManualClock::new(now);
        self.reopen().await;
    }

    /// Changes the database behind the store's back, while it is closed.
    pub async fn damage(&mut self, sql: &str) {
        self.store.close().await;
        self.factory.execute(sql).await;
        self.told = Arc::new(Recorder::default());
        self.store = self.factory.open(Arc::new(self.clock.clone()), self.told.clone()).await;
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Moves the clock by milliseconds.
    pub fn pass_ms(&self, ms: u64) {
        self.clock.advance(Duration::from_millis(ms));
    }

    /// Moves the clock to a microsecond before `at`.
    pub fn pass_until_just_before(&self, at: Timestamp) {
        self.clock.advance((at - self.now()) - Duration::from_micros(1));
    }

    /// Moves the clock by its smallest step.
    pub fn pass_one_tick(&self) {
        self.clock.advance(Duration::from_micros(1));
    }

    /// Lets the store take two turns, so that whatever it would do by itself now is done and delivered.
    pub async fn settle(&self) {
        for _ in 0..2 {
            let refused = self.apply(self.cancel(RunId(Uuid::nil()))).await;
            assert!(refused.is_err(), "there is no run with the nil id");
        }
    }

    // Commands.

    pub async fn apply(&self, command: Command) -> Outcome {
        self.apply_all(vec![command]).await.remove(0)
    }

    pub async fn apply_all(&self, commands: Vec<Command>) -> Vec<Outcome> {
        in_time("an answer", self.store.apply(commands)).await.expect("the store works")
    }

    /// Applies a command that must be accepted.
    pub async fn ok(&self, command: Command) -> Reply {
        let told = format!("{command:?}");
        self.apply(command).await.unwrap_or_else(|refused| panic!("{told}: {refused}"))
    }

    /// A start of the stage's type with a fresh id.
    pub fn new_run(&self, business_id: &str) -> StartRun {
        StartRun {
            namespace: self.namespace.clone(),
            id: RunId(Uuid::now_v7()),
            business_id: Some(business_id.into()),
            workflow_type: TYPE.into(),
            task_queue: QUEUE.into(),
            input: Payload::new(format!("input of {business_id}").into_bytes()),
            deadline_at: None,
            options: RunOptions::default(),
            labels: Default::default(),
            signals: Vec::new(),
        }
    }

    /// Starts a run that must not exist yet.
    pub async fn start(&self, business_id: &str) -> RunId {
        self.start_with(self.new_run(business_id)).await
    }

    pub async fn start_with(&self, start: StartRun) -> RunId {
        let id = start.id;
        let reply = self.ok(Command::start(start)).await;
        assert_eq!(reply, Reply::Started(Started { run: id, existed: false }));
        id
    }

    pub fn cancel(&self, run: RunId) -> Command {
        RunKey::new(self.namespace.clone(), run).order(Author::new("tester", "asked to"), act::Cancel)
    }

    pub fn resume(&self, run: RunId) -> Command {
        RunKey::new(self.namespace.clone(), run)
            .order(Author::new("tester", ""), act::Resume { request: None })
    }

    pub fn record(&self, lease: &LeaseRef, path: &str, result: &[u8]) -> Command {
        lease.report(act::RecordStep(StepResult {
            step: step(path),
            attempt: 1,
            result: Payload::new(result.to_vec()),
            elapsed_ms: 1,
        }))
    }

    pub fn begin(&self, lease: &LeaseRef, path: &str) -> Command {
        let policy = RetryPolicy::default();
        lease.report(act::BeginStep { step: step(path), timeout_ms: None, standard_ms: None, policy })
    }

    /// A failed attempt that ends the lease if it is retried.
    pub fn fail_step(&self, lease: &LeaseRef, path: &str, attempt: u32) -> Command {
        lease.report(act::FailStep {
            step: step(path),
            attempt,
            failure: Failure::new("BROKEN", "it broke"),
            policy: RetryPolicy::default(),
            elapsed_ms: 0,
            park: true,
        })
    }

    pub fn sleep(&self, lease: &LeaseRef, path: &str, duration_ms: i64) -> Command {
        lease.report(act::Sleep { step: step(path), duration_ms, park: true })
    }

    pub fn complete(&self, lease: &LeaseRef) -> Command {
        lease.report(act::Complete { steps: Vec::new(), output: Payload::new(&b"output"[..]) })
    }

    pub fn fail(&self, lease: &LeaseRef) -> Command {
        lease.report(act::Fail { failure: Failure::new("GAVE_UP", "enough"), step: None })
    }

    pub fn release(&self, lease: &LeaseRef) -> Command {
        lease.report(act::Release { why: "not now".into() })
    }

    // Workers.

    pub fn registration(&self, types: &[&str], max_concurrent: u32) -> Registration {
        Registration {
            namespace: self.namespace.clone(),
            task_queue: QUEUE.into(),
            workflow_types: types.iter().map(|name| Name::from(*name)).collect(),
            hostname: "stage".into(),
            pid: 1,
            version: "1".into(),
            max_concurrent,
            labels: [("zone".to_owned(), "a".to_owned())].into(),
        }
    }

    /// Changes the worker registry.
    pub async fn worker<T: Send, R>(&self, request: R) -> Result<T, RegistryError>
    where
        R: Request<Answer = Result<T, RegistryError>>,
    {
        in_time("an answer", self.store.ask(request)).await.expect("the store works")
    }

    /// Registers a worker of the stage's type.
    pub async fn register(&self, max_concurrent: u32) -> WorkerId {
        self.register_for(&[TYPE], max_concurrent).await
    }

    pub async fn register_for(&self, types: &[&str], max_concurrent: u32) -> WorkerId {
        let id = WorkerId(Uuid::now_v7());
        let registration = self.registration(types, max_concurrent);
        self.worker(Register { id, registration }).await.expect("a new worker is welcome");
        id
    }

    /// Registers a worker that takes as many runs as it has slots.
    pub async fn stand_by(&self, max_concurrent: u32) -> Standing {
        let worker = self.register(max_concurrent).await;
        self.stand_by_as(worker, &[TYPE]).await
    }

    /// Lets a registered worker take as many runs as it has slots.
    pub async fn stand_by_as(&self, worker: WorkerId, types: &[&str]) -> Standing {
        self.demand(worker, types, false).await.expect("the worker is registered for these types")
    }

    /// Lets a registered worker take one run.
    pub async fn poll(&self, worker: WorkerId) -> Standing {
        self.demand(worker, &[TYPE], true).await.expect("the worker is registered for this type")
    }

    pub async fn demand(
        &self,
        worker: WorkerId,
        types: &[&str],
        once: bool,
    ) -> Result<Standing, RegistryError> {
        let (deliver, deliveries) = unbounded_channel();
        let id = NEXT_DEMAND.fetch_add(1, Relaxed);
        let types = types.iter().map(|name| Name::from(*name)).collect();
        let demand = Demand { id, worker, types, once, lease_ms: LEASE_MS, deliver };
        in_time("an answer", self.store.stand_by(demand)).await.expect("the store works")?;
        Ok(Standing { worker, demand: id, deliveries })
    }

    /// A heartbeat that lists these leases; unlisted ones are left alone.
    pub async fn beat(&self, id: WorkerId, runs: Vec<LeaseRef>) -> Result<BeatAnswer, RegistryError> {
        self.beat_with(Beat {
            id,
            of: None,
            runs,
            lease_ms: LEASE_MS,
            unlisted_after_ms: None,
            reconnected: false,
            listed_before: Vec::new(),
        })
        .await
    }

    pub async fn beat_with(&self, beat: Beat) -> Result<BeatAnswer, RegistryError> {
        self.worker(beat).await
    }

    // Rules.

    /// Changes the stage's namespace.
    pub async fn change(&self, command: NamespaceCommand) -> Result<Namespace, ControlRejection> {
        let request = ChangeNamespace { name: self.namespace.clone(), command, gate: None };
        in_time("an answer", self.store.ask(request)).await.expect("the store works")
    }

    /// Changes a gate.
    pub async fn gate(&self, key: GateKey, command: GateCommand) -> Gate {
        let changed = in_time("an answer", self.store.ask(ChangeGate { key, command })).await;
        changed.expect("the store works").expect("the gate is changed")
    }

    /// The gate before the stage's queue.
    pub fn queue_gate(&self) -> GateKey {
        GateKey::queue(&self.namespace, &QUEUE.into())
    }

    /// The gate before one type on the stage's queue.
    pub fn type_gate(&self, workflow_type: &str) -> GateKey {
        GateKey::of_type(&self.namespace, &QUEUE.into(), &workflow_type.into())
    }

    /// Runs of the stage's namespace that are leased now.
    pub async fn leased(&self) -> u64 {
        let depths = self.store.depths(&self.namespace, self.now()).await.expect("reading works");
        depths.iter().map(|depth| depth.leased).sum()
    }

    // Housekeeping.

    /// Sweeps until nothing is left to sweep.
    pub async fn sweep(&self, kind: SweepKind) {
        while in_time("a sweep", self.store.sweep(kind)).await.expect("the store works").more {}
    }

    pub async fn sweep_expired(&self) {
        self.sweep(SweepKind::Expired { now: self.now(), leap: None }).await;
    }

    /// Declares workers lost that were not heard of for `ms`.
    pub async fn sweep_workers_silent_for_ms(&self, ms: i64) {
        self.sweep(SweepKind::StaleWorkers { before: self.now().plus_ms(-ms) }).await;
    }

    // Reading.

    pub async fn run(&self, id: RunId) -> Run {
        let found = self.store.run(&self.namespace, id).await.expect("reading works");
        unversioned(found.expect("the run exists").run)
    }

    /// The reason for which the run is parked, and when it goes on by itself.
    pub async fn waits(&self, id: RunId) -> (&'static str, Option<Timestamp>) {
        let state = self.run(id).await.state;
        let parked = state.parked().expect("the run is parked");
        (parked.wait.reason().name(), parked.at)
    }

    pub async fn events(&self, id: RunId) -> Vec<Event> {
        self.store.events(&self.namespace, id, 0, 100_000).await.expect("reading works")
    }

    pub async fn event_names(&self, id: RunId) -> Vec<String> {
        self.events(id).await.iter().map(|event| event.kind.name().to_owned()).collect()
    }

    pub async fn worker_row(&self, id: WorkerId) -> Worker {
        self.worker_view(id).await.worker
    }

    /// How many runs the worker holds.
    pub async fn active(&self, id: WorkerId) -> u32 {
        self.worker_view(id).await.active
    }

    async fn worker_view(&self, id: WorkerId) -> kagzi_store::WorkerView {
        let found = self.store.worker_by_id(&self.namespace, id).await.expect("reading works");
        found.expect("the worker is known")
    }
}

impl Standing {
    /// The next run, which must come.
    pub async fn next(&mut self) -> Assignment {
        let next = in_time("an assignment", self.deliveries.recv()).await;
        next.expect("the store keeps the demand")
    }

    /// A run that has been delivered already, if any.
    pub fn ready(&mut self) -> Option<Assignment> {
        self.deliveries.try_recv().ok()
    }

    /// Whether the store has let the demand go.
    pub fn let_go(&mut self) -> bool {
        matches!(self.deliveries.try_recv(), Err(TryRecvError::Disconnected))
    }
}

/// The run without its version, which counts writes and means nothing outside the store.
pub fn unversioned(run: Run) -> Run {
    Run { version: 0, ..run }
}

/// A step at position 0 of its scope.
pub fn step(path: &str) -> StepRef {
    StepRef { path: path.into(), position: 0 }
}
