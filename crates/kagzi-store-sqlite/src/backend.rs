//! The writing side: plain statements on the one connection that writes.

use kagzi_model::{
    Aggregate, EventKind, FAILURE_HANDLER, Name, Payload, Run, RunId, Timestamp, Worker, WorkerId,
};
use kagzi_store::{Backend, DueQuery, EventRow, QueueKey, RunKey, StoreError, WriteSet};
use rusqlite::{Connection, OptionalExtension, params};

use crate::{
    error::from_sqlite,
    file_lock::FileLock,
    row::{self, lease_worker},
};

const LOAD_RUN: &str =
    "SELECT namespace_id, run_id, business_id, workflow_type, task_queue, state, version, epoch, attempts,
        dispatch_count, crashes, created_at, started_at, finished_at, deadline_at, options
   FROM runs
  WHERE run_id = ?1";

// Without payloads: deciding never looks at them.
const LOAD_EVENTS: &str = "SELECT seq, at, detail
   FROM events
  WHERE run_id = ?1
  ORDER BY seq";

const FIND_BUSINESS: &str = "SELECT runs.run_id, events.payload, events.content_type
   FROM runs
   JOIN events ON events.run_id = runs.run_id AND events.seq = 1
  WHERE runs.namespace_id = ?1
    AND runs.business_id = ?2";

const DUE: &str = "SELECT due_at, run_id
   FROM runs INDEXED BY runs_due
  WHERE namespace_id = ?1
    AND task_queue = ?2
    AND workflow_type = ?3
    AND due_at <= ?4
  ORDER BY due_at
  LIMIT ?5";

const NEXT_DUE: &str = "SELECT due_at
   FROM runs INDEXED BY runs_due
  WHERE namespace_id = ?1
    AND task_queue = ?2
    AND workflow_type = ?3
    AND due_at > ?4
  ORDER BY due_at
  LIMIT 1";

const SWEEP_DUE: &str = "SELECT run_id, namespace_id
   FROM runs INDEXED BY runs_sweep
  WHERE sweep_at <= ?1
  ORDER BY sweep_at
  LIMIT ?2";

const NEXT_SWEEP: &str = "SELECT sweep_at
   FROM runs INDEXED BY runs_sweep
  WHERE sweep_at IS NOT NULL
  ORDER BY sweep_at
  LIMIT 1";

const LOAD_WORKER: &str =
    "SELECT namespace_id, worker_id, task_queue, hostname, pid, version, workflow_types, labels,
        max_concurrent, status, completed_total, failed_total, registered_at, heartbeat_at, deregistered_at
   FROM workers
  WHERE worker_id = ?1";

// Only asked when a run fails; a namespace has few workers, and the newest that registered it decides.
const HANDLER_QUEUE: &str = "SELECT task_queue
   FROM workers INDEXED BY workers_listed
  WHERE namespace_id = ?1
    AND EXISTS (SELECT 1 FROM json_each(workflow_types) WHERE json_each.value = ?2)
  ORDER BY registered_at DESC, worker_id DESC
  LIMIT 1";

const LEASED_BY: &str = "SELECT run_id, namespace_id
   FROM runs INDEXED BY runs_leased
  WHERE lease_worker = ?1";

const STALE_WORKERS: &str = "SELECT worker_id
   FROM workers INDEXED BY workers_alive
  WHERE status <> 3
    AND heartbeat_at < ?1
  ORDER BY heartbeat_at
  LIMIT ?2";

const INSERT_RUN: &str =
    "INSERT INTO runs (namespace_id, run_id, business_id, workflow_type, task_queue, status, state,
                  version, epoch, due_at, sweep_at, lease_worker, attempts, dispatch_count, crashes,
                  created_at, started_at, finished_at, deadline_at, options)
 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20)";

const UPDATE_RUN: &str = "UPDATE runs
    SET status = ?2, state = ?3, epoch = ?4, due_at = ?5, sweep_at = ?6, lease_worker = ?7,
        attempts = ?8, dispatch_count = ?9, crashes = ?10, started_at = ?11, finished_at = ?12,
        version = ?13, deadline_at = ?14
  WHERE run_id = ?1
    AND version = ?13 - 1";

const INSERT_EVENT: &str = "INSERT INTO events (run_id, seq, at, kind, step, detail, payload, content_type)
 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

const PUT_WORKER: &str =
    "INSERT OR REPLACE INTO workers (namespace_id, worker_id, task_queue, hostname, pid, version,
                  workflow_types, labels, max_concurrent, status, completed_total, failed_total,
                  registered_at, heartbeat_at, deregistered_at)
 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)";

/// Every statement of the write path; a test prepares each on a real database.
pub const STATEMENTS: &[(&str, &str)] = &[
    ("LOAD_RUN", LOAD_RUN),
    ("LOAD_EVENTS", LOAD_EVENTS),
    ("FIND_BUSINESS", FIND_BUSINESS),
    ("DUE", DUE),
    ("NEXT_DUE", NEXT_DUE),
    ("SWEEP_DUE", SWEEP_DUE),
    ("NEXT_SWEEP", NEXT_SWEEP),
    ("LOAD_WORKER", LOAD_WORKER),
    ("HANDLER_QUEUE", HANDLER_QUEUE),
    ("LEASED_BY", LEASED_BY),
    ("STALE_WORKERS", STALE_WORKERS),
    ("INSERT_RUN", INSERT_RUN),
    ("UPDATE_RUN", UPDATE_RUN),
    ("INSERT_EVENT", INSERT_EVENT),
    ("PUT_WORKER", PUT_WORKER),
];

/// The connection that writes, and the lock that makes it the only one.
pub struct SqliteBackend {
    connection: Connection,
    _lock: FileLock,
}

impl SqliteBackend {
    pub fn new(connection: Connection, lock: FileLock) -> Self {
        SqliteBackend { connection, _lock: lock }
    }

    fn run_keys(&self, sql: &str, bind: impl rusqlite::Params) -> rusqlite::Result<Vec<RunKey>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let key = |found: &rusqlite::Row<'_>| {
            Ok(RunKey { run: RunId(row::uuid(found, 0)?), namespace: row::name(found, 1)? })
        };
        statement.query_map(bind, key)?.collect()
    }

    fn load_one(&self, id: RunId) -> rusqlite::Result<Option<Aggregate>> {
        let mut load_run = self.connection.prepare_cached(LOAD_RUN)?;
        let Some(run) = load_run.query_row([id.0.as_bytes()], row::run).optional()? else {
            return Ok(None);
        };
        let mut aggregate = Aggregate::new(run, 0);
        let mut load_events = self.connection.prepare_cached(LOAD_EVENTS)?;
        let mut rows = load_events.query([id.0.as_bytes()])?;
        while let Some(found) = rows.next()? {
            let kind: EventKind = row::json(found, 2)?;
            aggregate.last_seq = found.get::<_, i64>(0)?.cast_unsigned();
            aggregate.absorb(Timestamp(found.get(1)?), &kind);
        }
        Ok(Some(aggregate))
    }

    fn insert_run(&self, run: &Run) -> rusqlite::Result<usize> {
        self.connection.prepare_cached(INSERT_RUN)?.execute(params![
            &*run.namespace,
            run.id.0.as_bytes(),
            row::chosen_business_id(run),
            &*run.workflow_type,
            &*run.task_queue,
            run.state.status() as u8,
            to_json(&run.state),
            run.version.cast_signed(),
            run.epoch.cast_signed(),
            run.due_at().map(|at| at.0),
            run.sweep_at().map(|at| at.0),
            lease_worker(run),
            run.attempts,
            run.dispatch_count,
            run.crashes,
            run.created_at.0,
            run.started_at.map(|at| at.0),
            run.finished_at.map(|at| at.0),
            run.deadline_at.map(|at| at.0),
            to_json(&run.options),
        ])
    }

    fn update_run(&self, run: &Run) -> rusqlite::Result<usize> {
        self.connection.prepare_cached(UPDATE_RUN)?.execute(params![
            run.id.0.as_bytes(),
            run.state.status() as u8,
            to_json(&run.state),
            run.epoch.cast_signed(),
            run.due_at().map(|at| at.0),
            run.sweep_at().map(|at| at.0),
            lease_worker(run),
            run.attempts,
            run.dispatch_count,
            run.crashes,
            run.started_at.map(|at| at.0),
            run.finished_at.map(|at| at.0),
            run.version.cast_signed(),
            // Changes when a run is reopened after its deadline.
            run.deadline_at.map(|at| at.0),
        ])
    }

    fn insert_event(&self, row: &EventRow) -> rusqlite::Result<usize> {
        let event = &row.event;
        self.connection.prepare_cached(INSERT_EVENT)?.execute(params![
            row.run.0.as_bytes(),
            event.seq.cast_signed(),
            event.at.0,
            event.kind.number(),
            event.kind.step().map(|(step, _)| &**step),
            to_json(&event.kind),
            event.payload.as_ref().map(|payload| &*payload.data),
            event.payload.as_ref().map(|payload| &*payload.content_type).filter(|name| !name.is_empty()),
        ])
    }

    fn put_worker(&self, worker: &Worker) -> rusqlite::Result<usize> {
        let registration = &worker.registration;
        self.connection.prepare_cached(PUT_WORKER)?.execute(params![
            &*registration.namespace,
            worker.id.0.as_bytes(),
            &*registration.task_queue,
            &*registration.hostname,
            registration.pid,
            &*registration.version,
            to_json(&registration.workflow_types),
            to_json(&registration.labels),
            registration.max_concurrent,
            worker.status as u8,
            worker.completed_total,
            worker.failed_total,
            worker.registered_at.0,
            worker.heartbeat_at.0,
            worker.deregistered_at.map(|at| at.0),
        ])
    }

    fn write_all(&self, set: &WriteSet) -> rusqlite::Result<()> {
        // One prepared statement per row: SQLite has no round trip that a batch could save.
        for run in &set.inserted {
            self.insert_run(run)?;
        }
        for run in &set.updated {
            if self.update_run(run)? != 1 {
                // We are alone on the file, so memory and disk disagree: reload rather than overwrite.
                return Err(rusqlite::Error::StatementChangedRows(0));
            }
        }
        for event in &set.events {
            self.insert_event(event)?;
        }
        for worker in &set.workers {
            self.put_worker(worker)?;
        }
        Ok(())
    }
}

impl Backend for SqliteBackend {
    async fn begin(&mut self) -> Result<(), StoreError> {
        self.execute("BEGIN")
    }

    async fn commit(&mut self) -> Result<(), StoreError> {
        self.execute("COMMIT")
    }

    async fn rollback(&mut self) {
        // Fails only when SQLite has rolled back by itself, as it does when the disk is full.
        if let Err(error) = self.execute("ROLLBACK") {
            tracing::debug!(%error, "nothing to roll back");
        }
    }

    async fn load(&mut self, keys: &[RunKey]) -> Result<Vec<Aggregate>, StoreError> {
        keys.iter()
            .filter_map(|key| self.load_one(key.run).transpose())
            .collect::<Result<_, _>>()
            .map_err(from_sqlite)
    }

    async fn find_business(
        &mut self,
        namespace: &Name,
        business_id: &Name,
    ) -> Result<Option<(RunId, Payload)>, StoreError> {
        let find = || {
            self.connection
                .prepare_cached(FIND_BUSINESS)?
                .query_row([&**namespace, &**business_id], |found| {
                    let input = row::payload(found, 1)?.unwrap_or_else(|| Payload::new(&b""[..]));
                    Ok((RunId(row::uuid(found, 0)?), input))
                })
                .optional()
        };
        find().map_err(from_sqlite)
    }

    async fn due(&mut self, query: &DueQuery<'_>) -> Result<Vec<(Timestamp, RunId)>, StoreError> {
        let QueueKey { namespace, task_queue, workflow_type } = query.key;
        let find = || {
            let mut statement = self.connection.prepare_cached(DUE)?;
            let bind =
                params![&**namespace, &**task_queue, &**workflow_type, query.now.0, query.limit as i64];
            statement
                .query_map(bind, |found| Ok((Timestamp(found.get(0)?), RunId(row::uuid(found, 1)?))))?
                .collect::<rusqlite::Result<_>>()
        };
        find().map_err(from_sqlite)
    }

    async fn next_due(&mut self, key: &QueueKey, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let find = || {
            self.connection
                .prepare_cached(NEXT_DUE)?
                .query_row(params![&*key.namespace, &*key.task_queue, &*key.workflow_type, now.0], |found| {
                    Ok(Timestamp(found.get(0)?))
                })
                .optional()
        };
        find().map_err(from_sqlite)
    }

    async fn sweep_due(&mut self, now: Timestamp, limit: usize) -> Result<Vec<RunKey>, StoreError> {
        self.run_keys(SWEEP_DUE, params![now.0, limit as i64]).map_err(from_sqlite)
    }

    async fn next_sweep(&mut self) -> Result<Option<Timestamp>, StoreError> {
        let find = || {
            let mut statement = self.connection.prepare_cached(NEXT_SWEEP)?;
            statement.query_row([], |found| Ok(Timestamp(found.get(0)?))).optional()
        };
        find().map_err(from_sqlite)
    }

    async fn handler_queue(&mut self, namespace: &Name) -> Result<Option<Name>, StoreError> {
        let find = || {
            self.connection
                .prepare_cached(HANDLER_QUEUE)?
                .query_row([&**namespace, FAILURE_HANDLER], |found| {
                    Ok(Name::from(found.get::<_, String>(0)?))
                })
                .optional()
        };
        find().map_err(from_sqlite)
    }

    async fn load_worker(&mut self, id: WorkerId) -> Result<Option<Worker>, StoreError> {
        let find = || {
            self.connection.prepare_cached(LOAD_WORKER)?.query_row([id.0.as_bytes()], row::worker).optional()
        };
        find().map_err(from_sqlite)
    }

    async fn leased_by(&mut self, id: WorkerId) -> Result<Vec<RunKey>, StoreError> {
        self.run_keys(LEASED_BY, [id.0.as_bytes()]).map_err(from_sqlite)
    }

    async fn stale_workers(&mut self, before: Timestamp, limit: usize) -> Result<Vec<WorkerId>, StoreError> {
        let find = || {
            let mut statement = self.connection.prepare_cached(STALE_WORKERS)?;
            let bind = params![before.0, limit as i64];
            statement
                .query_map(bind, |found| Ok(WorkerId(row::uuid(found, 0)?)))?
                .collect::<rusqlite::Result<_>>()
        };
        find().map_err(from_sqlite)
    }

    async fn write(&mut self, set: WriteSet) -> Result<(), StoreError> {
        self.write_all(&set).map_err(from_sqlite)
    }
}

impl SqliteBackend {
    fn execute(&self, sql: &str) -> Result<(), StoreError> {
        let run = || self.connection.prepare_cached(sql)?.execute([]);
        run().map(|_| ()).map_err(from_sqlite)
    }
}

impl Drop for SqliteBackend {
    /// A clean stop leaves everything in the one file, so that copying it is a backup. Should it fail, the WAL
    /// beside it still holds what is missing.
    fn drop(&mut self) {
        if let Err(error) = self.connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)") {
            tracing::warn!(%error, "could not move the write-ahead log into the database file");
        }
    }
}

fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("our own types are always valid JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::{RUN_COLUMNS, WORKER_COLUMNS};

    #[test]
    fn column_lists_match_the_readers() {
        let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");

        assert!(squeeze(LOAD_RUN).contains(&squeeze(RUN_COLUMNS)));
        assert!(squeeze(LOAD_WORKER).contains(&squeeze(WORKER_COLUMNS)));
    }
}
