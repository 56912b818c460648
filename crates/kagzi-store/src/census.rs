//! A count of everything that lives, over all namespaces: for metrics.

use std::collections::BTreeMap;

use kagzi_model::{Name, Timestamp, WorkerStatus};

use crate::StoreError;

/// Living runs by queue, and workers by status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Census {
    /// In the order of namespace and queue.
    pub queues: Vec<QueueCount>,
    pub workers: Vec<WorkerCount>,
}

/// The living runs of one queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueCount {
    pub namespace: Name,
    pub task_queue: Name,
    /// Due now, without a worker.
    pub ready: u64,
    /// Due later: sleeping, or waiting for a retry.
    pub waiting: u64,
    pub leased: u64,
    pub oldest_ready_at: Option<Timestamp>,
}

/// Workers of one namespace with one status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerCount {
    pub namespace: Name,
    pub status: WorkerStatus,
    pub count: u64,
}

/// Runs of one namespace that are parked for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitCount {
    pub namespace: Name,
    /// The word of the reason to wake: what the wait is that people are shown.
    pub reason: Name,
    pub count: u64,
}

/// What a database counts of runs that are due at some time, for one queue.
#[derive(Debug, Clone)]
pub struct DueCount {
    pub namespace: Name,
    pub task_queue: Name,
    /// Due now.
    pub ready: u64,
    /// Due at any time.
    pub total: u64,
    /// The earliest time at which one is due.
    pub earliest: Timestamp,
}

impl Census {
    /// Puts together what a database counted: due runs, leased runs by queue, and workers by the number of
    /// their status.
    pub fn of(
        due: Vec<DueCount>,
        leased: Vec<(Name, Name, u64)>,
        workers: Vec<(Name, i64, u64)>,
    ) -> Result<Census, StoreError> {
        let mut queues = BTreeMap::new();
        let empty = |namespace: &Name, task_queue: &Name| QueueCount {
            namespace: namespace.clone(),
            task_queue: task_queue.clone(),
            ready: 0,
            waiting: 0,
            leased: 0,
            oldest_ready_at: None,
        };
        for DueCount { namespace, task_queue, ready, total, earliest } in due {
            let mut queue = empty(&namespace, &task_queue);
            (queue.ready, queue.waiting) = (ready, total - ready);
            queue.oldest_ready_at = (ready > 0).then_some(earliest);
            queues.insert((namespace, task_queue), queue);
        }
        for (namespace, task_queue, leased) in leased {
            let fresh = empty(&namespace, &task_queue);
            queues.entry((namespace, task_queue)).or_insert(fresh).leased = leased;
        }
        let worker = |(namespace, number, count): (Name, i64, u64)| {
            let status = WorkerStatus::from_number(number)
                .ok_or_else(|| StoreError::Corrupt(format!("unknown worker status {number}")))?;
            Ok(WorkerCount { namespace, status, count })
        };
        let workers = workers.into_iter().map(worker).collect::<Result<_, StoreError>>()?;
        Ok(Census { queues: queues.into_values().collect(), workers })
    }
}
