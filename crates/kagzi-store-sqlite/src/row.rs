//! Rows to structs and back.

use bytes::Bytes;
use kagzi_model::{
    Event, Name, Payload, Registration, Run, RunId, State, Timestamp, Worker, WorkerId, WorkerStatus,
};
use rusqlite::{Row, types::Type};
use uuid::Uuid;

/// The columns of a run, in the order that [`run`] reads them.
pub const RUN_COLUMNS: &str = "namespace_id, run_id, business_id, workflow_type, task_queue, state, version, epoch, attempts, \
     dispatch_count, crashes, created_at, started_at, finished_at, deadline_at, options";

/// Reads a run.
pub fn run(row: &Row<'_>) -> rusqlite::Result<Run> {
    let id = uuid(row, 1)?;
    let business_id: Option<String> = row.get(2)?;
    Ok(Run {
        namespace: name(row, 0)?,
        id: RunId(id),
        business_id: business_id.map_or_else(|| Name::from(id.to_string()), Name::from),
        workflow_type: name(row, 3)?,
        task_queue: name(row, 4)?,
        state: json(row, 5)?,
        version: row.get::<_, i64>(6)?.cast_unsigned(),
        epoch: row.get::<_, i64>(7)?.cast_unsigned(),
        attempts: row.get(8)?,
        dispatch_count: row.get(9)?,
        crashes: row.get(10)?,
        created_at: Timestamp(row.get(11)?),
        started_at: row.get::<_, Option<i64>>(12)?.map(Timestamp),
        finished_at: row.get::<_, Option<i64>>(13)?.map(Timestamp),
        deadline_at: row.get::<_, Option<i64>>(14)?.map(Timestamp),
        options: json(row, 15)?,
    })
}

/// The business id as stored: none when it is only the run id again.
pub fn chosen_business_id(run: &Run) -> Option<&str> {
    (*run.business_id != *run.id.to_string()).then_some(&*run.business_id)
}

/// The worker that holds the run, as stored.
pub fn lease_worker(run: &Run) -> Option<&[u8]> {
    match &run.state {
        State::Leased(lease) => Some(lease.worker.0.as_bytes()),
        State::Ready { .. } | State::Timer { .. } | State::Retry { .. } | State::Paused { .. } => None,
        State::Completed | State::Failed { .. } | State::Cancelled { .. } | State::TimedOut { .. } => None,
    }
}

/// Reads an event with its payload: seq, at, detail, payload, content_type.
pub fn event(row: &Row<'_>) -> rusqlite::Result<Event> {
    Ok(Event {
        seq: row.get::<_, i64>(0)?.cast_unsigned(),
        at: Timestamp(row.get(1)?),
        kind: json(row, 2)?,
        payload: payload(row, 3)?,
    })
}

/// Reads a payload from two columns: bytes, content type.
pub fn payload(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Payload>> {
    let data: Option<Vec<u8>> = row.get(at)?;
    let content_type: Option<String> = row.get(at + 1)?;
    Ok(data.map(|data| Payload {
        data: Bytes::from(data),
        content_type: Name::from(content_type.unwrap_or_default()),
    }))
}

/// The columns of a worker, in the order that [`worker`] reads them.
pub const WORKER_COLUMNS: &str = "namespace_id, worker_id, task_queue, hostname, pid, version, workflow_types, labels, \
     max_concurrent, status, completed_total, failed_total, registered_at, heartbeat_at, deregistered_at";

/// Reads a worker. An unknown status is corruption, never "offline".
pub fn worker(row: &Row<'_>) -> rusqlite::Result<Worker> {
    let status: i64 = row.get(9)?;
    Ok(Worker {
        id: WorkerId(uuid(row, 1)?),
        registration: Registration {
            namespace: name(row, 0)?,
            task_queue: name(row, 2)?,
            workflow_types: json(row, 6)?,
            hostname: name(row, 3)?,
            pid: row.get(4)?,
            version: name(row, 5)?,
            max_concurrent: row.get(8)?,
            labels: json(row, 7)?,
        },
        status: WorkerStatus::from_number(status)
            .ok_or_else(|| unreadable(9, format!("unknown worker status {status}")))?,
        completed_total: row.get(10)?,
        failed_total: row.get(11)?,
        registered_at: Timestamp(row.get(12)?),
        heartbeat_at: Timestamp(row.get(13)?),
        deregistered_at: row.get::<_, Option<i64>>(14)?.map(Timestamp),
    })
}

/// Reads an id.
pub fn uuid(row: &Row<'_>, at: usize) -> rusqlite::Result<Uuid> {
    let bytes = row.get_ref(at)?.as_blob()?;
    Uuid::from_slice(bytes).map_err(|error| unreadable(at, error.to_string()))
}

/// Reads a name.
pub fn name(row: &Row<'_>, at: usize) -> rusqlite::Result<Name> {
    Ok(Name::from(row.get_ref(at)?.as_str()?))
}

/// Reads JSON. What cannot be read is reported, never replaced by a default.
pub fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, at: usize) -> rusqlite::Result<T> {
    serde_json::from_str(row.get_ref(at)?.as_str()?).map_err(|error| unreadable(at, error.to_string()))
}

fn unreadable(column: usize, why: String) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, why.into())
}
