//! Rows to structs and back.

use std::sync::Arc;

use kagzi_model::{Labels, Name, Registration, Run, RunId, State, Timestamp, Worker, WorkerId, WorkerStatus};
use kagzi_store::{OrderBy, RunKey, StoreError};
use tokio_postgres::{Row, types::FromSql};
use uuid::Uuid;

use crate::error::from_postgres;

/// The columns of a run, in the order that [`run`] reads them.
pub const RUN_COLUMNS: &str = "runs.namespace_id, runs.run_id, runs.business_id, runs.workflow_type, \
                               runs.task_queue, runs.state, \
     runs.version, runs.epoch, runs.attempts, runs.dispatch_count, runs.crashes, runs.created_at, \
     runs.started_at, runs.finished_at, runs.deadline_at, runs.options, runs.labels";

/// The columns that are a run's place in a list.
pub fn run_place(order: OrderBy) -> (usize, usize) {
    match order {
        OrderBy::CreatedAt => (11, 1),
        OrderBy::FinishedAt => (13, 1),
    }
}

/// How many columns a run has.
pub const RUN_WIDTH: usize = 17;

/// Reads a run.
pub fn run(row: &Row) -> Result<Run, StoreError> {
    Ok(Run {
        namespace: name(row, 0)?,
        id: RunId(get(row, 1)?),
        business_id: get::<Option<&str>>(row, 2)?.map(Name::from),
        workflow_type: name(row, 3)?,
        task_queue: name(row, 4)?,
        state: json(row, 5)?,
        version: get::<i64>(row, 6)?.cast_unsigned(),
        epoch: get::<i64>(row, 7)?.cast_unsigned(),
        attempts: get::<i32>(row, 8)?.cast_unsigned(),
        dispatch_count: get::<i32>(row, 9)?.cast_unsigned(),
        crashes: get::<i32>(row, 10)?.cast_unsigned(),
        created_at: Timestamp(get(row, 11)?),
        started_at: get::<Option<i64>>(row, 12)?.map(Timestamp),
        finished_at: get::<Option<i64>>(row, 13)?.map(Timestamp),
        deadline_at: get::<Option<i64>>(row, 14)?.map(Timestamp),
        options: Arc::new(json(row, 15)?),
        labels: labels(row, 16)?,
    })
}

fn labels(row: &Row, at: usize) -> Result<Labels, StoreError> {
    if get::<Option<&str>>(row, at)?.is_some() { json(row, at) } else { Ok(Labels::default()) }
}

/// Reads the key of a run: run_id, namespace_id.
pub fn run_key(row: &Row) -> Result<RunKey, StoreError> {
    Ok(RunKey { id: RunId(get(row, 0)?), namespace: name(row, 1)? })
}

/// The worker that holds the run, as stored.
pub fn lease_worker(run: &Run) -> Option<Uuid> {
    match &run.state {
        State::Leased(lease) => Some(lease.worker.0),
        State::Ready { .. } | State::Waiting(_) | State::Paused { .. } => None,
        State::Completed | State::Failed { .. } | State::Cancelled { .. } | State::TimedOut { .. } => None,
    }
}

/// The columns of a worker, in the order that [`worker`] reads them.
pub const WORKER_COLUMNS: &str = "namespace_id, worker_id, task_queue, hostname, pid, version, \
                                  workflow_types, labels, \
     max_concurrent, status, completed_total, failed_total, registered_at, heartbeat_at, deregistered_at, row_version";

/// The columns that are a worker's place in a list.
pub const WORKER_PLACE: (usize, usize) = (12, 1);

/// How many columns a worker has.
pub const WORKER_WIDTH: usize = 16;

/// Reads a worker. An unknown status is corruption, never "offline".
pub fn worker(row: &Row) -> Result<Worker, StoreError> {
    let status: i16 = get(row, 9)?;
    Ok(Worker {
        id: WorkerId(get(row, 1)?),
        registration: Registration {
            namespace: name(row, 0)?,
            task_queue: name(row, 2)?,
            workflow_types: json(row, 6)?,
            hostname: name(row, 3)?,
            pid: get(row, 4)?,
            version: name(row, 5)?,
            max_concurrent: u32::try_from(get::<i64>(row, 8)?).unwrap_or(u32::MAX),
            labels: json(row, 7)?,
        },
        status: WorkerStatus::from_number(status.into())
            .ok_or_else(|| StoreError::Corrupt(format!("unknown worker status {status}")))?,
        completed_total: get(row, 10)?,
        failed_total: get(row, 11)?,
        registered_at: Timestamp(get(row, 12)?),
        heartbeat_at: Timestamp(get(row, 13)?),
        deregistered_at: get::<Option<i64>>(row, 14)?.map(Timestamp),
        row_version: get::<i64>(row, 15)?.cast_unsigned(),
    })
}

/// Reads one column.
pub fn get<'r, T: FromSql<'r>>(row: &'r Row, at: usize) -> Result<T, StoreError> {
    row.try_get(at).map_err(from_postgres)
}

/// Reads a name.
pub fn name(row: &Row, at: usize) -> Result<Name, StoreError> {
    get::<&str>(row, at).map(Name::from)
}

/// Reads JSON. What cannot be read is reported, never replaced by a default.
pub fn json<T: serde::de::DeserializeOwned>(row: &Row, at: usize) -> Result<T, StoreError> {
    serde_json::from_str(get(row, at)?)
        .map_err(|error| StoreError::Corrupt(format!("column {}: {error}", row.columns()[at].name())))
}
