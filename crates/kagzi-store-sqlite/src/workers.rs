//! Workers: the statements about their table.

use kagzi_model::{Name, Registration, Timestamp, Worker, WorkerId, WorkerStatus};
use kagzi_store::{
    Changes, LoadedWorker, LoadedWorkers, RunKey, StoreError, WorkerRows, WorkersQuery, worker,
};

use crate::{
    backend::SqliteBackend,
    db::Db,
    runs::run_key,
    value::{Row, Value, bind, json, unreadable},
};

kagzi_store::statements! {
/// Every statement about workers on the writing connection; a test prepares each on a real database.
STATEMENTS:

const LOAD_WORKER: &str = concat!(
    "SELECT ",
    worker!(columns),
    "
   FROM workers
  WHERE worker_id = ?1"
);

// Asked whenever a run fails; the newest worker that registered it decides.
const HANDLER_QUEUE: &str = "SELECT task_queue
   FROM workers INDEXED BY workers_handling
  WHERE namespace_id = ?1
    AND handles_failures = 1
  ORDER BY registered_at DESC, worker_id DESC
  LIMIT 1";

const LEASED_BY: &str = "SELECT run_id, namespace_id
   FROM runs INDEXED BY runs_leased
  WHERE lease_worker = ?1
    AND lease_worker IS NOT NULL
  ORDER BY run_id";

const STALE_WORKERS: &str = "SELECT worker_id
   FROM workers INDEXED BY workers_alive
  WHERE status <> 3
    AND heartbeat_at < ?1
  ORDER BY heartbeat_at, worker_id
  LIMIT ?2";

const INSERT_WORKER: &str = concat!(
    "INSERT INTO workers (",
    worker!(inserted),
    ")
 VALUES (",
    worker!(values),
    ")"
);

const UPDATE_WORKER: &str = concat!(
    "UPDATE workers
    SET ",
    worker!(set),
    "
  WHERE worker_id = ?2
    AND row_version = ?18"
);

const LONG_OFFLINE: &str = concat!(
    "SELECT ",
    worker!(columns),
    "
   FROM workers INDEXED BY workers_offline
  WHERE status = 3
    AND deregistered_at < ?1
    AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.lease_worker = workers.worker_id)
  ORDER BY deregistered_at, worker_id
  LIMIT ?2"
);

const DELETE_WORKER: &str = "DELETE FROM workers
  WHERE worker_id = ?1";
}

impl WorkerRows for SqliteBackend {
    async fn handler_queue(&mut self, namespace: &Name) -> Result<Option<Name>, StoreError> {
        self.db().first(HANDLER_QUEUE, bind![namespace], |row| row.get(0))
    }

    async fn load_workers(&mut self, query: &WorkersQuery<'_>) -> Result<LoadedWorkers, StoreError> {
        // One look-up per worker: SQLite has no round trip that a batch could save.
        let mut loaded = LoadedWorkers::default();
        for id in query.whole.iter().chain(query.known) {
            match self.db().first(LOAD_WORKER, bind![*id], read) {
                Ok(None) => {}
                Ok(Some(worker)) => {
                    let held = self.db().all(LEASED_BY, bind![*id], run_key)?;
                    let holds = held.into_iter().map(|key: RunKey| key.id).collect();
                    loaded.workers.push(LoadedWorker { worker, holds });
                }
                Err(StoreError::Corrupt(why)) => loaded.unreadable.push((*id, why)),
                Err(other) => return Err(other),
            }
        }
        Ok(loaded)
    }

    async fn stand_by(&mut self, ids: &[WorkerId]) -> Result<LoadedWorkers, StoreError> {
        self.load_workers(&WorkersQuery { whole: ids, ..WorkersQuery::default() }).await
    }

    async fn leased_by(&mut self, id: WorkerId) -> Result<Vec<RunKey>, StoreError> {
        self.db().all(LEASED_BY, bind![id], run_key)
    }

    async fn stale_workers(&mut self, before: Timestamp, limit: usize) -> Result<Vec<WorkerId>, StoreError> {
        self.db().all(STALE_WORKERS, bind![before, limit], |row| row.get(0))
    }

    async fn forget_workers(&mut self, before: Timestamp, limit: usize) -> Result<Vec<Worker>, StoreError> {
        let forgotten = self.db().all(LONG_OFFLINE, bind![before, limit], read)?;
        for worker in &forgotten {
            self.db().execute(DELETE_WORKER, bind![worker.id])?;
        }
        Ok(forgotten)
    }
}

/// Writes what changed. We are alone on the file, so a row that is not as memory says means: reload.
pub fn write(db: &Db, changes: &Changes<Worker>) -> Result<(), StoreError> {
    let Changes { deleted, implicit, inserted, updated } = changes;
    debug_assert!(deleted.is_empty() && implicit.is_empty(), "a worker registers, and a sweep forgets it");
    for worker in inserted {
        bound(worker, |values| db.execute(INSERT_WORKER, values))?;
    }
    for (from, worker) in updated {
        let written = bound(worker, |values| {
            let mut values = values.to_vec();
            values.extend_from_slice(bind![*from]);
            db.execute(UPDATE_WORKER, &values)
        })?;
        if written != 1 {
            return Err(StoreError::Conflict("a worker has another version than memory says".into()));
        }
    }
    Ok(())
}

fn bound<T>(worker: &Worker, write: impl FnOnce(&[Value<'_>; worker!(inserted_width)]) -> T) -> T {
    let registration = &worker.registration;
    write(bind![
        registration.namespace,
        worker.id,
        registration.task_queue,
        registration.hostname,
        registration.pid,
        registration.version,
        json(&registration.workflow_types),
        json(&registration.labels),
        registration.max_concurrent,
        worker.status as u8,
        worker.completed_total,
        worker.failed_total,
        worker.registered_at,
        worker.heartbeat_at,
        worker.deregistered_at,
        worker.row_version,
        registration.handles_failures(),
    ])
}

/// The columns that are a worker's place in a list.
pub const PLACE: (usize, usize) = (12, 1);

/// Reads a worker. An unknown status is corruption, never "offline".
pub fn read(row: &Row<'_>) -> Result<Worker, StoreError> {
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
