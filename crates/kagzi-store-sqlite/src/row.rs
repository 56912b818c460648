//! Rows to structs and back.

use std::sync::Arc;

use kagzi_model::{Labels, Registration, Run, State, Worker, WorkerStatus};
use kagzi_store::{OrderBy, StoreError};

use crate::value::{Row, json, unreadable};

/// The columns of a run, in the order that [`run`] reads them.
pub const RUN_COLUMNS: &str = "namespace_id, run_id, business_id, workflow_type, task_queue, state, \
                               version, epoch, attempts, \
     dispatch_count, crashes, created_at, started_at, finished_at, deadline_at, options, labels";

/// How many columns a run has.
pub const RUN_WIDTH: usize = 17;

/// The columns that are a run's place in a list.
pub fn run_place(order: OrderBy) -> (usize, usize) {
    match order {
        OrderBy::CreatedAt => (11, 1),
        OrderBy::FinishedAt => (13, 1),
    }
}

/// Reads a run.
pub fn run(row: &Row<'_>) -> Result<Run, StoreError> {
    Ok(Run {
        namespace: row.get(0)?,
        id: row.get(1)?,
        business_id: row.get(2)?,
        workflow_type: row.get(3)?,
        task_queue: row.get(4)?,
        state: row.json(5)?,
        version: row.get(6)?,
        epoch: row.get(7)?,
        attempts: row.get(8)?,
        dispatch_count: row.get(9)?,
        crashes: row.get(10)?,
        created_at: row.get(11)?,
        started_at: row.get(12)?,
        finished_at: row.get(13)?,
        deadline_at: row.get(14)?,
        options: Arc::new(row.json(15)?),
        labels: row.get::<Option<String>>(16)?.map_or(Ok(Labels::default()), |text| labels(16, &text))?,
    })
}

/// The labels as stored: nothing at all for the many runs that have none.
pub fn stored_labels(run: &Run) -> Option<String> {
    (!run.labels.is_empty()).then(|| json(&run.labels))
}

fn labels(at: usize, text: &str) -> Result<Labels, StoreError> {
    serde_json::from_str(text).map_err(|error| unreadable(at, error))
}

/// The worker that holds the run, as stored.
pub fn lease_worker(run: &Run) -> Option<&[u8]> {
    match &run.state {
        State::Leased(lease) => Some(lease.worker.0.as_bytes()),
        State::Ready { .. } | State::Waiting(_) | State::Paused { .. } => None,
        State::Completed | State::Failed { .. } | State::Cancelled { .. } | State::TimedOut { .. } => None,
    }
}

/// The columns of a worker, in the order that [`worker`] reads them.
pub const WORKER_COLUMNS: &str = "namespace_id, worker_id, task_queue, hostname, pid, version, \
                                  workflow_types, labels, \
     max_concurrent, status, completed_total, failed_total, registered_at, heartbeat_at, deregistered_at, row_version";

/// How many columns a worker has.
pub const WORKER_WIDTH: usize = 16;

/// The columns that are a worker's place in a list.
pub const WORKER_PLACE: (usize, usize) = (12, 1);

/// Reads a worker. An unknown status is corruption, never "offline".
pub fn worker(row: &Row<'_>) -> Result<Worker, StoreError> {
    let status: i64 = row.get(9)?;
    Ok(Worker {
        id: row.get(1)?,
        registration: Registration {
            namespace: row.get(0)?,
            task_queue: row.get(2)?,
            workflow_types: row.json(6)?,
            hostname: row.get(3)?,
            pid: row.get(4)?,
            version: row.get(5)?,
            max_concurrent: row.get(8)?,
            labels: row.json(7)?,
        },
        status: WorkerStatus::from_number(status)
            .ok_or_else(|| unreadable(9, format!("unknown worker status {status}")))?,
        completed_total: row.get(10)?,
        failed_total: row.get(11)?,
        registered_at: row.get(12)?,
        heartbeat_at: row.get(13)?,
        deregistered_at: row.get(14)?,
        row_version: row.get(15)?,
    })
}
