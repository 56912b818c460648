//! How fast the store alone is: runs of three steps, no network in between. Beside the rate it says what a
//! run costs the writer's thread and the disk, which a busy machine changes little.
//!
//! `cargo run --release -p kagzi-store-sqlite --example throughput -- [runs] [in flight]`

use std::{fs, sync::Arc, time::Instant};

use kagzi_model::{
    Command, LeaseRef, Name, Payload, Registration, RunId, RunOptions, StartRun, StepRef, StepResult,
    WorkerId, act,
};
use kagzi_store::{Demand, LaneStats, Register, Silent, Store, SystemClock};
use kagzi_store_sqlite::SqliteStore;
use tokio::{sync::mpsc::unbounded_channel, task::JoinSet};
use uuid::Uuid;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut args = std::env::args().skip(1).map(|text| text.parse::<usize>().expect("a number"));
    let (runs, in_flight) = (args.next().unwrap_or(50_000), args.next().unwrap_or(256));
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("bench.db");
    let store = Arc::new(
        SqliteStore::open(&path, Arc::new(SystemClock::new()), Arc::new(Silent))
            .expect("a fresh file can be opened"),
    );
    let worker = register(&store, in_flight).await;
    let (deliver, mut assignments) = unbounded_channel();
    let types = vec![Name::from("bench")];
    let demand = Demand { id: 1, worker, types, once: false, lease_ms: 30_000, deliver };
    store.stand_by(demand).await.expect("the store works").expect("the worker is registered");

    let (began, cpu, written) = (Instant::now(), writer_micros(), bytes_written());
    let mut tasks = JoinSet::new();
    for _ in 0..in_flight.min(runs) {
        let store = store.clone();
        tasks.spawn(async move { drop(store.apply(vec![start()]).await.expect("the store works")) });
    }
    for ended in 0..runs {
        let lease = assignments.recv().await.expect("runs come").lease();
        let next = (ended + in_flight < runs).then(start);
        let store = store.clone();
        tasks.spawn(async move {
            store.apply(vec![record(&lease, 0)]).await.expect("the store works");
            store.apply(vec![record(&lease, 1)]).await.expect("the store works");
            let mut last = vec![complete(&lease)];
            last.extend(next);
            store.apply(last).await.expect("the store works");
        });
    }
    tasks.join_all().await;

    let (seconds, stats) = (began.elapsed().as_secs_f64(), store.stats());
    let (commits, commands) = (LaneStats::get(&stats.commits), LaneStats::get(&stats.commands));
    let per_run = |total: u64| total as f64 / runs as f64;
    println!(
        "{:.0} runs/s; a run: {:.1} µs of the writer, {:.2} KiB written; a commit: {:.0} commands",
        runs as f64 / seconds,
        per_run(writer_micros() - cpu),
        per_run(bytes_written() - written) / 1024.0,
        commands as f64 / commits as f64,
    );
    store.close().await;
}

async fn register(store: &Store, slots: usize) -> WorkerId {
    let id = WorkerId(Uuid::now_v7());
    let registration = Registration {
        namespace: "default".into(),
        task_queue: "bench".into(),
        workflow_types: vec!["bench".into()],
        hostname: "bench".into(),
        pid: 1,
        version: "1".into(),
        max_concurrent: u32::try_from(slots).expect("not that many"),
        labels: Default::default(),
    };
    let registered = store.ask(Register { id, registration }).await;
    registered.expect("the store works").expect("the registration is valid");
    id
}

fn start() -> Command {
    let id = RunId(Uuid::now_v7());
    Command::start(StartRun {
        namespace: "default".into(),
        id,
        business_id: None,
        workflow_type: "bench".into(),
        task_queue: "bench".into(),
        input: payload(),
        deadline_at: None,
        options: RunOptions::default(),
        labels: Default::default(),
        signals: Vec::new(),
    })
}

fn step(position: u32) -> StepRef {
    StepRef { path: ["one", "two", "three"][position as usize].into(), position }
}

fn record(lease: &LeaseRef, position: u32) -> Command {
    let step = step(position);
    lease.report(act::RecordStep(StepResult { step, attempt: 1, result: payload(), elapsed_ms: 0 }))
}

fn complete(lease: &LeaseRef) -> Command {
    let last = kagzi_model::StepResult { step: step(2), attempt: 1, result: payload(), elapsed_ms: 0 };
    lease.report(act::Complete { steps: vec![last], output: payload() })
}

fn payload() -> Payload {
    let items = r#"[{"sku":"a-1","quantity":2},{"sku":"b-7","quantity":1}]"#;
    Payload::new(format!(r#"{{"customer":"c-1024","items":{items},"total":99}}"#).into_bytes())
}

/// Processor time of the thread that writes, from what Linux says of it.
fn writer_micros() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").expect("Linux").flatten();
    let writers = tasks.filter(|task| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == "kagzi-write")
    });
    let nanos = writers.filter_map(|task| {
        let said = fs::read_to_string(task.path().join("schedstat")).ok()?;
        said.split(' ').next()?.parse::<u64>().ok()
    });
    nanos.sum::<u64>() / 1000
}

/// Bytes that this process gave to files.
fn bytes_written() -> u64 {
    let said = fs::read_to_string("/proc/self/io").expect("Linux");
    let line = said.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.and_then(|bytes| bytes.parse().ok()).expect("a number of bytes")
}
