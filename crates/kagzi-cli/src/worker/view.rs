use crate::table::{self, Mood};
use crate::time_text;
use jiff::Timestamp;
use kagzi::admin::{RegisteredWorker, WorkerStatus};
use serde::Serialize;
use std::collections::BTreeMap;

/// A worker as `-o json` prints it. Fields are only ever added.
#[derive(Debug, Serialize)]
pub struct WorkerView {
    pub worker_id: String,
    pub namespace: String,
    pub task_queue: String,
    pub status: &'static str,
    pub hostname: String,
    pub pid: i32,
    pub version: String,
    pub workflow_types: Vec<String>,
    pub max_concurrent: u32,
    pub active_count: u32,
    pub total_completed: u64,
    pub total_failed: u64,
    pub registered_at: Option<Timestamp>,
    pub last_heartbeat_at: Option<Timestamp>,
    pub deregistered_at: Option<Timestamp>,
    /// Sorted by name, so that two prints of one worker are equal.
    pub labels: BTreeMap<String, String>,
    #[serde(skip)]
    pub mood: Mood,
}

impl From<RegisteredWorker> for WorkerView {
    fn from(worker: RegisteredWorker) -> Self {
        let status = worker.status;
        WorkerView {
            worker_id: worker.worker_id,
            namespace: worker.namespace,
            task_queue: worker.task_queue,
            status: status.name(),
            hostname: worker.hostname,
            pid: worker.pid,
            version: worker.version,
            workflow_types: worker.workflow_types,
            max_concurrent: worker.max_concurrent,
            active_count: worker.active_count,
            total_completed: worker.total_completed,
            total_failed: worker.total_failed,
            registered_at: time_text::of(Some(worker.registered_at)),
            last_heartbeat_at: time_text::of(worker.last_heartbeat_at),
            deregistered_at: time_text::of(worker.deregistered_at),
            labels: worker.labels,
            mood: mood(status),
        }
    }
}

impl WorkerView {
    pub fn fields(&self, now: Timestamp) -> String {
        let time = |time: Option<Timestamp>| time.map(|time| time_text::absolute_and_relative(time, now));
        let labels: Vec<_> = self.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        table::text(table::of_fields([
            ("worker", Some(self.worker_id.clone())),
            ("status", Some(self.status.to_owned())),
            ("queue", Some(self.task_queue.clone())),
            ("namespace", Some(self.namespace.clone())),
            ("types", Some(self.workflow_types.join(", "))),
            ("active", Some(format!("{} of {}", self.active_count, self.max_concurrent))),
            ("completed", Some(self.total_completed.to_string())),
            ("failed", Some(self.total_failed.to_string())),
            ("host", Some(format!("{} (pid {})", self.hostname, self.pid))),
            ("version", Some(self.version.clone()).filter(|version| !version.is_empty())),
            ("labels", Some(labels.join(", ")).filter(|labels| !labels.is_empty())),
            ("registered", time(self.registered_at)),
            ("last heartbeat", time(self.last_heartbeat_at)),
            ("deregistered", time(self.deregistered_at)),
        ]))
    }
}

fn mood(status: WorkerStatus) -> Mood {
    match status {
        WorkerStatus::Online => Mood::Good,
        WorkerStatus::Draining => Mood::Busy,
        // The SDK may learn of others.
        _ => Mood::Idle,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::output;
    use crate::run::sample_now;

    pub fn sample_worker() -> RegisteredWorker {
        let at = |seconds| std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        let mut worker = RegisteredWorker::default();
        worker.worker_id = "0199f3c2-0000-7000-8000-000000000001".into();
        (worker.namespace, worker.task_queue) = ("default".into(), "orders".into());
        worker.status = WorkerStatus::Online;
        (worker.hostname, worker.pid, worker.version) = ("node-1".into(), 4711, "1.4.0".into());
        worker.workflow_types = vec!["order".into(), "refund".into()];
        (worker.max_concurrent, worker.active_count) = (100, 3);
        (worker.total_completed, worker.total_failed) = (1_200, 4);
        (worker.registered_at, worker.last_heartbeat_at) = (at(1_794_740_000), Some(at(1_794_744_058)));
        worker.labels = [("zone".into(), "b".into()), ("team".into(), "shop".into())].into();
        worker
    }

    #[test]
    fn a_worker_as_json() {
        insta::assert_snapshot!(output::json(&WorkerView::from(sample_worker())));
    }

    #[test]
    fn a_worker_as_fields() {
        insta::assert_snapshot!(WorkerView::from(sample_worker()).fields(sample_now()));
    }
}
