//! One frame: two samples, and what happened between them.

use super::sample::Sample;
use crate::queue::view::GateView;
use crate::table;
use kagzi::admin::{Queue, RegisteredWorker, WorkerStatus};
use serde::Serialize;
use std::time::SystemTime;

#[derive(Debug, Serialize)]
pub struct Frame {
    pub address: String,
    pub namespace: String,
    pub version: String,
    pub store: String,
    pub uptime_s: u64,
    /// Averages since the frame before; none where the server does not count it.
    pub runs_finished_per_s: Option<f64>,
    pub commands_per_s: Option<f64>,
    pub commits_per_s: Option<f64>,
    /// Loading, writing and fsync of one batch.
    pub commit_ms: Option<f64>,
    pub runs: Vec<Count>,
    pub queues: Vec<QueueLine>,
    /// What an operator set before all of them.
    pub namespace_gate: Option<String>,
    pub workers: Vec<WorkerLine>,
}

#[derive(Debug, Serialize)]
pub struct Count {
    pub status: String,
    pub runs: u64,
    /// There are more.
    pub at_least: bool,
}

/// What `kagzi queue list` counts.
#[derive(Debug, Serialize)]
pub struct QueueLine {
    pub task_queue: String,
    pub ready: u64,
    pub oldest_ready_s: Option<u64>,
    pub waiting: u64,
    pub running: u64,
    pub workers: u32,
    /// What an operator set before it.
    pub gate: Option<String>,
}

#[derive(Debug, Serialize)]
pub struct WorkerLine {
    pub worker_id: String,
    pub task_queue: String,
    pub hostname: String,
    pub status: &'static str,
    pub active: u32,
    pub max_concurrent: u32,
    pub completed: u64,
    pub failed: u64,
}

impl Frame {
    pub fn between(before: &Sample, now: &Sample) -> Frame {
        let seconds = (now.at - before.at).as_secs_f64();
        let grown = |name: &str| Some(now.metrics.get(name)? - before.metrics.get(name)?);
        let finished = |sample: &Sample| {
            let outcomes = sample.metrics.by_label("kagzi_runs_finished_total");
            (!outcomes.is_empty()).then(|| outcomes.values().sum::<f64>())
        };
        let ended = finished(now).and_then(|total| Some(total - finished(before)?));
        let commits = grown("kagzi_commits_total");
        let commit_s = grown("kagzi_commit_seconds_sum");
        let per_second = |count: f64| round(count / seconds);
        let each =
            |total: f64| commits.filter(|commits| *commits > 0.0).map(|commits| round(total * 1e3 / commits));
        Frame {
            address: now.address.clone(),
            namespace: now.namespace.clone(),
            version: now.server.version.clone(),
            store: now.server.store.clone(),
            uptime_s: now.server.uptime.as_secs(),
            runs_finished_per_s: ended.map(per_second),
            commands_per_s: grown("kagzi_commands_total").map(per_second),
            commits_per_s: commits.map(per_second),
            commit_ms: commit_s.and_then(each),
            runs: counts(now),
            queues: queues(now),
            namespace_gate: now.namespace_gate.as_ref().map(GateView::sentence),
            workers: workers(now),
        }
    }

    pub fn text(&self) -> String {
        let or_dash = |value: Option<f64>| value.map_or("-".to_owned(), |value| value.to_string());
        let head = format!(
            "kagzi {} at {} on {}, up {}, namespace {}\n{} runs/s ended, {} commands/s in {} commits/s, {} \
             ms per commit",
            self.version,
            self.address,
            self.store,
            age(self.uptime_s),
            self.namespace,
            or_dash(self.runs_finished_per_s),
            or_dash(self.commands_per_s),
            or_dash(self.commits_per_s),
            or_dash(self.commit_ms),
        );
        let count = |count: &Count| format!("{} {}{}", count.status, count.runs, plus(count.at_least));
        let runs = self.runs.iter().map(count).collect::<Vec<_>>().join("  ");
        format!("{head}\n\n{runs}\n\n{}\n\n{}", self.queue_table(), self.worker_table())
    }

    fn queue_table(&self) -> String {
        if self.queues.is_empty() {
            return "no queue has runs, workers or a gate".to_owned();
        }
        let mut table =
            table::with_columns(&["QUEUE", "READY", "OLDEST", "WAITING", "RUNNING", "WORKERS", "GATE"]);
        for queue in &self.queues {
            table.add_row([
                queue.task_queue.clone(),
                queue.ready.to_string(),
                queue.oldest_ready_s.map_or("-".to_owned(), age),
                queue.waiting.to_string(),
                queue.running.to_string(),
                queue.workers.to_string(),
                queue.gate.clone().unwrap_or("-".to_owned()),
            ]);
        }
        match &self.namespace_gate {
            Some(gate) => format!("{}\nthe whole namespace is {gate}", table::text(table)),
            None => table::text(table),
        }
    }

    fn worker_table(&self) -> String {
        if self.workers.is_empty() {
            return "no worker is online".to_owned();
        }
        let mut table =
            table::with_columns(&["WORKER", "QUEUE", "HOST", "STATUS", "ACTIVE", "COMPLETED", "FAILED"]);
        for worker in &self.workers {
            table.add_row([
                worker.worker_id.clone(),
                worker.task_queue.clone(),
                worker.hostname.clone(),
                worker.status.to_owned(),
                format!("{}/{}", worker.active, worker.max_concurrent),
                worker.completed.to_string(),
                worker.failed.to_string(),
            ]);
        }
        table::text(table)
    }
}

/// Living runs by status, then ended ones by outcome since the server started.
fn counts(sample: &Sample) -> Vec<Count> {
    let living = sample.living.iter().map(|living| Count {
        status: living.status.name().to_owned(),
        runs: living.count,
        at_least: living.more,
    });
    let ended = sample.metrics.by_label("kagzi_runs_finished_total");
    let ended = ended.into_iter().map(|(outcome, count)| Count {
        status: outcome.to_uppercase(),
        runs: count as u64,
        at_least: false,
    });
    living.chain(ended).collect()
}

fn queues(sample: &Sample) -> Vec<QueueLine> {
    let line = |queue: &Queue| QueueLine {
        task_queue: queue.task_queue.clone(),
        ready: queue.depth.ready,
        oldest_ready_s: queue.depth.oldest_ready_at.map(|at| waited(at, sample.clock)),
        waiting: queue.depth.waiting,
        running: queue.depth.leased,
        workers: queue.workers,
        gate: GateView::unless_open(queue.gate.clone()).map(|gate| gate.sentence()),
    };
    sample.queues.iter().map(line).collect()
}

fn waited(since: SystemTime, now: SystemTime) -> u64 {
    // Another machine's clock may be ahead of ours.
    now.duration_since(since).unwrap_or_default().as_secs()
}

fn workers(sample: &Sample) -> Vec<WorkerLine> {
    let alive = sample.workers.iter().filter(|worker| worker.status != WorkerStatus::Offline);
    let line = |worker: &RegisteredWorker| WorkerLine {
        worker_id: worker.worker_id.clone(),
        task_queue: worker.task_queue.clone(),
        hostname: worker.hostname.clone(),
        status: worker.status.name(),
        active: worker.active_count,
        max_concurrent: worker.max_concurrent,
        completed: worker.total_completed,
        failed: worker.total_failed,
    };
    alive.map(line).collect()
}

fn plus(more: bool) -> &'static str {
    if more { "+" } else { "" }
}

fn age(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        7200..=172_799 => format!("{} h", seconds / 3600),
        172_800.. => format!("{} d", seconds / 86_400),
    }
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::super::metrics::tests::sample as metrics;
    use super::super::sample::Living;
    use super::*;
    use kagzi::admin::{Gate, ServerInfo};
    use kagzi::client::RunStatus;
    use tokio::time::{Duration, Instant};

    fn sample(at: Instant) -> Sample {
        let clock = SystemTime::now();
        let mut queue = Queue::default();
        queue.task_queue = "orders".into();
        (queue.depth.ready, queue.depth.waiting, queue.depth.leased) = (20_000, 1, 3);
        queue.depth.oldest_ready_at = Some(clock - Duration::from_secs(300));
        queue.workers = 1;
        (queue.gate.paused, queue.gate.paused_by) = (true, Some("ada".into()));
        let mut worker = RegisteredWorker::default();
        (worker.worker_id, worker.task_queue) = ("w1".into(), "orders".into());
        (worker.hostname, worker.status) = ("host-1".into(), WorkerStatus::Online);
        (worker.active_count, worker.max_concurrent) = (3, 100);
        let mut server = ServerInfo::default();
        (server.version, server.store) = ("0.1.0".into(), "sqlite:kagzi.db".into());
        server.uptime = Duration::from_secs(200);
        let mut limited = Gate::default();
        limited.max_concurrent = Some(5);
        let living = |status, count, more| Living { status, count, more };
        Sample {
            at,
            clock,
            address: "127.0.0.1:50051".into(),
            namespace: "default".into(),
            server,
            metrics: metrics(),
            workers: vec![worker],
            living: vec![living(RunStatus::Pending, 10_000, true), living(RunStatus::Running, 3, false)],
            queues: vec![queue],
            namespace_gate: Some(GateView::from(limited)),
        }
    }

    #[test]
    fn a_frame_shows_queues_workers_runs_and_rates() {
        let began = Instant::now();
        let (before, now) = (sample(began), sample(began + Duration::from_secs(2)));

        let text = Frame::between(&before, &now).text();

        for expected in [
            "kagzi 0.1.0 at 127.0.0.1:50051 on sqlite:kagzi.db, up 3 min, namespace default",
            "0 runs/s ended, 0 commands/s in 0 commits/s, - ms per commit",
            "PENDING 10000+  RUNNING 3  COMPLETED 7  FAILED 1",
            "orders  20000  5 min   1        3        1        paused by ada",
            "the whole namespace is limited to 5 at once",
            "w1      orders  host-1  ONLINE  3/100   0          0",
        ] {
            assert!(text.contains(expected), "{expected}\n--- is not in\n{text}");
        }
    }

    #[test]
    fn rates_are_averages_between_two_samples() {
        let began = Instant::now();
        let (before, mut now) = (sample(began), sample(began + Duration::from_secs(2)));
        now.metrics = super::super::metrics::tests::later();

        let frame = Frame::between(&before, &now);

        assert_eq!((frame.runs_finished_per_s, frame.commits_per_s), (Some(10.0), Some(5.0)));
        assert_eq!((frame.commands_per_s, frame.commit_ms), (Some(50.0), Some(4.0)));
    }
}
