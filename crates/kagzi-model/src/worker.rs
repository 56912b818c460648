//! The worker registry's row.

use std::collections::BTreeMap;

use crate::{Name, Timestamp, WorkerId};

/// What a worker says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    pub namespace: Name,
    pub task_queue: Name,
    pub workflow_types: Vec<Name>,
    pub hostname: Name,
    pub pid: i32,
    pub version: Name,
    pub max_concurrent: u32,
    /// Free-form; the identity of a container lives here, since its pid is always 1.
    pub labels: BTreeMap<String, String>,
}

impl Registration {
    /// It registered the failure handler of its namespace.
    pub fn handles_failures(&self) -> bool {
        self.workflow_types.iter().any(|name| **name == *crate::FAILURE_HANDLER)
    }
}

/// One registered worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    pub id: WorkerId,
    pub registration: Registration,
    pub status: WorkerStatus,
    pub completed_total: i64,
    pub failed_total: i64,
    pub registered_at: Timestamp,
    pub heartbeat_at: Timestamp,
    pub deregistered_at: Option<Timestamp>,
}

/// Whether a worker takes work; the numbers are part of the API and of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum WorkerStatus {
    Online = 1,
    /// Finishes what it has and takes nothing new.
    Draining = 2,
    Offline = 3,
}

impl WorkerStatus {
    /// The status with this number; an unknown number is a corrupt row, never "offline".
    pub fn from_number(number: i64) -> Option<WorkerStatus> {
        [WorkerStatus::Online, WorkerStatus::Draining, WorkerStatus::Offline]
            .into_iter()
            .find(|status| *status as i64 == number)
    }

    /// The status's name as users read and type it.
    pub fn name(self) -> &'static str {
        match self {
            WorkerStatus::Online => "ONLINE",
            WorkerStatus::Draining => "DRAINING",
            WorkerStatus::Offline => "OFFLINE",
        }
    }

    /// The status a user typed, if it is one.
    pub fn from_name(name: &str) -> Option<WorkerStatus> {
        [WorkerStatus::Online, WorkerStatus::Draining, WorkerStatus::Offline]
            .into_iter()
            .find(|status| status.name() == name)
    }
}
