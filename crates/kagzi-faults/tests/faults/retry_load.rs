//! Ten thousand runs that fail twice and then succeed, on a worker with ten slots, on both databases.

use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use kagzi_faults::{Pace, QUEUE, Stage, eventually, flaky, stage};
use kagzi_proto::v1::{self, StartWorkflowsRequest};
use kagzi_store_postgres::fixture;

const RUNS: usize = 10_000;
/// Memory is compared from here on: by then every cache and pool has its size.
const WARM: usize = 2_000;
const SLOTS: i32 = 10;
/// Far more than there are slots.
const WAITING: usize = 50;
/// Runs that have begun and not ended, about.
const WINDOW: usize = 1_000;
const BATCH: usize = 250;
/// What the server may hold more after ten thousand runs than after two thousand. Nothing is kept per run
/// that ended, but SQLite's page cache (32 MiB) fills with the file: 18 MiB were measured, 33 then 51 MiB in
/// all.
const GROWTH_KIB_MAX: u64 = 24 * 1024;
/// Far above what a step of the way takes.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn ten_thousand_failing_runs_wait_without_a_slot_on_sqlite() {
    ten_thousand_runs(stage!(Pace::Calm)).await;
}

#[tokio::test]
async fn ten_thousand_failing_runs_wait_without_a_slot_on_postgres() {
    ten_thousand_runs(stage!(Pace::Calm, fixture::database().await)).await;
}

async fn ten_thousand_runs(stage: Stage) {
    let worker = stage.worker(&["--types", flaky::TYPE, "--max-concurrent", &SLOTS.to_string()]).await;
    let load = Load { stage, pid: worker.pid() };

    load.waiting_takes_no_slot().await;
    let began = Instant::now();
    let (runs, [warm_kib, end_kib]) = load.run_all().await;
    println!("{RUNS} runs in {:?}, memory {warm_kib} KiB then {end_kib} KiB", began.elapsed());

    stream::iter(&runs).for_each_concurrent(32, |run| load.waited_long_enough(run)).await;
    assert!(end_kib < warm_kib + GROWTH_KIB_MAX, "the server grew from {warm_kib} KiB to {end_kib} KiB");
    let evidence = load.stage.close().await;
    assert_eq!((evidence.runs, evidence.completed), (RUNS + WAITING + 1, RUNS + 1));
}

struct Load {
    stage: Stage,
    pid: u32,
}

impl Load {
    async fn start(&self, count: usize, ask: &flaky::Ask) -> Vec<String> {
        let data = serde_json::to_vec(ask).expect("it is JSON");
        let request = v1::StartWorkflowRequest {
            task_queue: QUEUE.into(),
            workflow_type: flaky::TYPE.into(),
            input: Some(v1::Payload { data: data.into(), content_type: String::new() }),
            ..Default::default()
        };
        let requests = vec![request; count];
        let answer = self.stage.workflows().start_workflows(StartWorkflowsRequest { requests }).await;
        let results = answer.expect("a sound start").into_inner().results;
        results.into_iter().map(|result| result.run_id).collect()
    }

    /// What the worker has done. It never holds more than its slots.
    async fn completed(&self) -> usize {
        let worker = self.stage.workers_of(self.pid).await.remove(0);
        assert!(worker.active_count <= SLOTS, "{} runs are leased to {SLOTS} slots", worker.active_count);
        usize::try_from(worker.total_completed).expect("a count")
    }

    async fn waiting(&self) -> usize {
        let request = v1::ListWorkflowRunsRequest {
            reason: v1::WaitReason::Retry.into(),
            page_size: 1000,
            ..Default::default()
        };
        let answer = self.stage.workflows().list_workflow_runs(request).await.expect("runs can be listed");
        answer.into_inner().workflow_runs.len()
    }

    /// Five times as many runs as slots wait for 25 minutes each, longer than any test takes, and the worker
    /// is idle and takes another.
    async fn waiting_takes_no_slot(&self) {
        self.start(WAITING, &flaky::Ask { initial_ms: Some(25 * 60_000), failures: 1 }).await;
        eventually("all of them wait", async || (self.waiting().await == WAITING).then_some(())).await;
        let worker = self.stage.workers_of(self.pid).await.remove(0);
        assert_eq!(worker.active_count, 0);

        let probe = self.start(1, &flaky::Ask { initial_ms: None, failures: 0 }).await.remove(0);

        self.stage.completed(&probe).await;
        assert_eq!(self.waiting().await, WAITING, "none of them was disturbed");
    }

    /// Runs them all, and tells what memory the server had after the first and after the last of them.
    async fn run_all(&self) -> (Vec<String>, [u64; 2]) {
        let before = self.completed().await;
        let (mut runs, mut done, mut warm_kib) = (Vec::new(), 0, None);
        let mut moved = Instant::now();
        while done < RUNS {
            if runs.len() < RUNS && runs.len() - done < WINDOW {
                runs.extend(self.start(BATCH, &flaky::Ask { initial_ms: None, failures: 2 }).await);
            } else {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            let now_done = self.completed().await - before;
            if now_done > done {
                (done, moved) = (now_done, Instant::now());
            }
            assert!(moved.elapsed() < PATIENCE, "nothing moves after {done} of {RUNS} runs");
            if done >= WARM {
                warm_kib.get_or_insert_with(|| self.stage.server_memory_kib("VmRSS"));
            }
        }
        (runs, [warm_kib.expect("it passed there"), self.stage.server_memory_kib("VmRSS")])
    }

    /// By the times in its history: three attempts, and before the second and the third at least the policy's
    /// delay.
    async fn waited_long_enough(&self, run: &str) {
        let mut not_before = 0;
        let (mut failed, mut completed) = (0, 0);
        for event in self.stage.events(run).await {
            let detail: serde_json::Value =
                serde_json::from_str(&event.detail_json).expect("details are JSON");
            let at = micros(event.at);
            match event.kind().word().as_str() {
                "run_claimed" => {
                    assert!(at >= not_before, "run {run} was claimed {} us early", not_before - at)
                }
                "step_failed" => {
                    failed += 1;
                    assert_eq!(event.attempt, failed, "run {run}");
                    let delay_us = i64::try_from(flaky::INITIAL_MS * 1000).unwrap() << (failed - 1);
                    not_before = at + delay_us;
                    assert_eq!(detail["retry_at"].as_i64(), Some(not_before), "run {run}");
                }
                "step_completed" => {
                    completed += 1;
                    let outcome: flaky::Outcome =
                        serde_json::from_slice(&event.payload.expect("it has a result").data)
                            .expect("it is JSON");
                    assert_eq!((event.attempt, outcome.attempt), (3, 3), "run {run}");
                    assert!(outcome.at_once_max <= SLOTS.unsigned_abs(), "{outcome:?}");
                }
                "lease_lost" => panic!("run {run} lost its worker"),
                _ => {}
            }
        }
        assert_eq!((failed, completed), (2, 1), "run {run}");
    }
}

fn micros(at: Option<prost_types::Timestamp>) -> i64 {
    let at = at.expect("an event has a time");
    at.seconds * 1_000_000 + i64::from(at.nanos) / 1000
}
