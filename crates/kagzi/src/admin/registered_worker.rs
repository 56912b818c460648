//! A worker as the registry knows it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::SystemTime;

use kagzi_proto::v1;

use crate::absent::{always, at};

/// A worker as the registry knew it when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegisteredWorker {
    /// Its id.
    pub worker_id: String,
    /// Its namespace.
    pub namespace: String,
    /// The queue that it serves.
    pub task_queue: String,
    /// Where it stands.
    pub status: WorkerStatus,
    /// The machine that it runs on.
    pub hostname: String,
    /// Its process.
    pub pid: i32,
    /// The version of its code.
    pub version: String,
    /// What it can execute.
    pub workflow_types: Vec<String>,
    /// Runs at once.
    pub max_concurrent: u32,
    /// Runs that it executes, counted by the server.
    pub active_count: u32,
    /// Runs that it completed.
    pub total_completed: u64,
    /// Runs that failed with it.
    pub total_failed: u64,
    /// Since when it is known.
    pub registered_at: SystemTime,
    /// When it said last that it lives.
    pub last_heartbeat_at: Option<SystemTime>,
    /// When it left.
    pub deregistered_at: Option<SystemTime>,
    /// What it said about itself.
    pub labels: BTreeMap<String, String>,
}

/// Where a worker stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WorkerStatus {
    /// Takes runs.
    Online,
    /// Finishes what it has and takes nothing new.
    Draining,
    /// Is gone, or was declared lost.
    Offline,
    /// Something that only a newer server knows.
    Unknown,
}

impl RegisteredWorker {
    pub(crate) fn from_proto(worker: v1::Worker) -> RegisteredWorker {
        RegisteredWorker {
            status: WorkerStatus::from_wire(worker.status),
            worker_id: worker.worker_id,
            namespace: worker.namespace_id,
            task_queue: worker.task_queue,
            hostname: worker.hostname,
            pid: worker.pid,
            version: worker.version,
            workflow_types: worker.workflow_types,
            max_concurrent: u32::try_from(worker.max_concurrent).unwrap_or(0),
            active_count: u32::try_from(worker.active_count).unwrap_or(0),
            total_completed: u64::try_from(worker.total_completed).unwrap_or(0),
            total_failed: u64::try_from(worker.total_failed).unwrap_or(0),
            registered_at: always(worker.registered_at),
            last_heartbeat_at: at(worker.last_heartbeat_at),
            deregistered_at: at(worker.deregistered_at),
            labels: worker.labels.into_iter().collect(),
        }
    }
}

/// An empty worker, for tests of programs that show workers.
impl Default for RegisteredWorker {
    fn default() -> RegisteredWorker {
        RegisteredWorker::from_proto(v1::Worker::default())
    }
}

impl WorkerStatus {
    /// As it is published, e.g. `ONLINE`.
    ///
    /// ```
    /// assert_eq!(kagzi::admin::WorkerStatus::Online.name(), "ONLINE");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            WorkerStatus::Online => "ONLINE",
            WorkerStatus::Draining => "DRAINING",
            WorkerStatus::Offline => "OFFLINE",
            WorkerStatus::Unknown => "UNKNOWN",
        }
    }

    pub(super) fn to_wire(self) -> i32 {
        v1::WorkerStatus::from_word(self.name()).unwrap_or_default().into()
    }

    fn from_wire(number: i32) -> WorkerStatus {
        match v1::WorkerStatus::try_from(number) {
            Ok(v1::WorkerStatus::Online) => WorkerStatus::Online,
            Ok(v1::WorkerStatus::Draining) => WorkerStatus::Draining,
            Ok(v1::WorkerStatus::Offline) => WorkerStatus::Offline,
            Ok(v1::WorkerStatus::Unspecified) | Err(_) => WorkerStatus::Unknown,
        }
    }
}

impl fmt::Display for WorkerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_is_read_from_the_wire_and_an_unknown_one_says_so() {
        for sent in [v1::WorkerStatus::Online, v1::WorkerStatus::Draining, v1::WorkerStatus::Offline] {
            let read = WorkerStatus::from_wire(sent.into());
            assert_eq!(format!("WORKER_STATUS_{read}"), sent.as_str_name());
            assert_eq!(read.to_wire(), i32::from(sent));
        }
        assert_eq!(WorkerStatus::from_wire(77), WorkerStatus::Unknown);
    }
}
