//! A queue as operators see it.

use std::time::SystemTime;

use kagzi_proto::v1;

use crate::absent::{at, text};

/// What waits and runs on a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queue {
    /// Its name.
    pub task_queue: String,
    /// What waits and runs on it, over all types.
    pub depth: Depth,
    /// Online.
    pub workers: u32,
    /// What stands before it.
    pub gate: Gate,
    /// The same type by type.
    pub types: Vec<QueueType>,
}

/// What waits and runs of one type on a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueType {
    /// The type.
    pub workflow_type: String,
    /// What waits and runs.
    pub depth: Depth,
    /// Online, that registered it.
    pub workers: u32,
    /// What stands before it.
    pub gate: Gate,
}

/// How many runs wait and run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Depth {
    /// Due, without a worker.
    pub ready: u64,
    /// Sleeping, or waiting for a retry.
    pub waiting: u64,
    /// Executed at the moment.
    pub leased: u64,
    /// Since when the oldest ready one waits.
    pub oldest_ready_at: Option<SystemTime>,
}

/// What an operator put before a queue, a type on it, or all queues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gate {
    /// Nothing new is claimed.
    pub paused: bool,
    /// Who paused it.
    pub paused_by: Option<String>,
    /// Why.
    pub paused_note: String,
    /// Since when.
    pub paused_at: Option<SystemTime>,
    /// Runs at once, over all workers and servers; none = no limit.
    pub max_concurrent: Option<u32>,
}

impl Queue {
    pub(crate) fn from_proto(queue: v1::Queue) -> Queue {
        Queue {
            depth: Depth {
                ready: queue.ready,
                waiting: queue.waiting,
                leased: queue.leased,
                oldest_ready_at: at(queue.oldest_ready_at),
            },
            task_queue: queue.task_queue,
            workers: queue.workers,
            gate: Gate::from_proto(queue.gate),
            types: queue.types.into_iter().map(QueueType::from_proto).collect(),
        }
    }
}

impl QueueType {
    fn from_proto(of: v1::QueueType) -> QueueType {
        QueueType {
            depth: Depth {
                ready: of.ready,
                waiting: of.waiting,
                leased: of.leased,
                oldest_ready_at: at(of.oldest_ready_at),
            },
            workflow_type: of.workflow_type,
            workers: of.workers,
            gate: Gate::from_proto(of.gate),
        }
    }
}

impl Gate {
    pub(crate) fn from_proto(gate: Option<v1::Gate>) -> Gate {
        let gate = gate.unwrap_or_default();
        Gate {
            paused: gate.paused,
            paused_by: text(gate.paused_by),
            paused_note: gate.paused_note,
            paused_at: at(gate.paused_at),
            max_concurrent: gate.max_concurrent,
        }
    }

    /// Nothing is set.
    ///
    /// ```
    /// assert!(kagzi::admin::Gate::default().is_open());
    /// ```
    pub fn is_open(&self) -> bool {
        !self.paused && self.max_concurrent.is_none()
    }
}
