//! Servers, workers and runs for the tests of this crate.
#![allow(dead_code, reason = "each test file uses its part")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use kagzi_model::{
    Command, LeaseRef, Name, Payload, Registration, Reply, RunId, RunOptions, StartRun, Started, StepRef,
    StepResult, WorkerId, act,
};
use kagzi_store::{Assignment, Demand, Observer, Outcome, Register, Silent, Store};
use kagzi_store_postgres::{PostgresClock, PostgresOptions, PostgresStore, fixture};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

pub const LEASE_MS: i64 = 30_000;

/// One server's store.
pub struct Server {
    pub store: Store,
    pub clock: PostgresClock,
}

impl Server {
    pub async fn open(url: &str, options: PostgresOptions) -> Server {
        Server::observed(url, options, Arc::new(Silent)).await
    }

    pub async fn observed(url: &str, options: PostgresOptions, observer: Arc<dyn Observer>) -> Server {
        let clock = PostgresClock::start(url, &options).await.unwrap();
        let store = PostgresStore::open(url, options, Arc::new(clock.clone()), observer).await.unwrap();
        Server { store, clock }
    }

    pub async fn apply(&self, command: Command) -> Outcome {
        self.store.apply(vec![command]).await.unwrap().remove(0)
    }

    pub async fn start(&self, workflow_type: &str) -> RunId {
        match self.apply(start(workflow_type)).await.unwrap() {
            Reply::Started(Started { run, existed: false }) => run,
            other => panic!("{other:?}"),
        }
    }

    pub async fn register(&self, workflow_type: &str, max_concurrent: u32) -> WorkerId {
        self.register_in(&namespace(), workflow_type, max_concurrent).await
    }

    pub async fn register_in(&self, namespace: &Name, workflow_type: &str, max_concurrent: u32) -> WorkerId {
        let id = WorkerId(Uuid::now_v7());
        let registration = Registration {
            namespace: namespace.clone(),
            task_queue: "orders".into(),
            workflow_types: vec![workflow_type.into()],
            hostname: "test".into(),
            pid: 1,
            version: "1".into(),
            max_concurrent,
            labels: Default::default(),
        };
        self.store.ask(Register { id, registration }).await.unwrap().unwrap();
        id
    }

    /// Stands by for as many runs as the worker may hold.
    pub async fn stand_by(&self, worker: WorkerId, workflow_type: &str) -> UnboundedReceiver<Assignment> {
        self.demand(worker, workflow_type, false).await
    }

    /// Stands by for one run.
    pub async fn poll(&self, worker: WorkerId, workflow_type: &str) -> UnboundedReceiver<Assignment> {
        self.demand(worker, workflow_type, true).await
    }

    async fn demand(
        &self,
        worker: WorkerId,
        workflow_type: &str,
        once: bool,
    ) -> UnboundedReceiver<Assignment> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let (deliver, assignments) = unbounded_channel();
        let types = vec![workflow_type.into()];
        let id = NEXT.fetch_add(1, Relaxed);
        let demand = Demand { id, worker, types, once, lease_ms: LEASE_MS, deliver };
        self.store.stand_by(demand).await.unwrap().unwrap();
        assignments
    }

    /// Closes the store: only its tables are of interest.
    pub async fn store_closed(self) {
        self.store.close().await;
    }
}

pub fn namespace() -> Name {
    "default".into()
}

pub fn start(workflow_type: &str) -> Command {
    start_in(&namespace(), workflow_type)
}

pub fn start_in(namespace: &Name, workflow_type: &str) -> Command {
    let id = RunId(Uuid::now_v7());
    Command::start(StartRun {
        namespace: namespace.clone(),
        id,
        business_id: None,
        workflow_type: workflow_type.into(),
        task_queue: "orders".into(),
        input: Payload::new(&b"{\"n\":1}"[..]),
        deadline_at: None,
        options: RunOptions::default(),
        labels: Default::default(),
        signals: Vec::new(),
    })
}

pub fn record(lease: LeaseRef, step: &str, position: u32) -> Command {
    let step = StepRef { path: step.into(), position };
    lease.report(act::RecordStep(StepResult {
        step,
        attempt: 1,
        result: Payload::new(&b"1"[..]),
        elapsed_ms: 0,
    }))
}

pub fn complete(lease: LeaseRef) -> Command {
    lease.report(act::Complete { steps: Vec::new(), output: Payload::new(&b"\"done\""[..]) })
}

/// The next assignment, or a failed test.
pub async fn next(assignments: &mut UnboundedReceiver<Assignment>, within: Duration) -> Assignment {
    tokio::time::timeout(within, assignments.recv())
        .await
        .expect("a run arrives in time")
        .expect("still open")
}

/// A connection of somebody else.
pub async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Waits until a statement answers this.
pub async fn until(url: &str, sql: &str, answer: &str) {
    let seen = async {
        while fixture::sql(url, sql).await != [answer] {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let seen = tokio::time::timeout(Duration::from_secs(20), seen).await;
    seen.unwrap_or_else(|_| panic!("{sql} does not become {answer}"));
}
