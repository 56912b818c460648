//! The writing side: plain statements on the one connection that writes.

use std::ops::ControlFlow;

use kagzi_model::{Aggregate, Name, Payload, Run, RunId, Timestamp, Worker, WorkerId};
use kagzi_store::{
    Backend, Changes, DueKey, DueQuery, DueRun, FoundBusiness, LabelRow, Loaded, LoadedWorker, LoadedWorkers,
    QueueKey, RetireQuery, RunKey, StoreError, WorkersQuery, WriteSet,
};

use crate::{
    db::{Db, Statement},
    events,
    file_lock::FileLock,
    retention,
    row::{self, RUN_WIDTH, lease_worker},
    schedules,
    sound::Check,
    value::{Row, bind, json},
};

const LOAD_RUN: &str =
    "SELECT namespace_id, run_id, business_id, workflow_type, task_queue, state, version, epoch, attempts,
        dispatch_count, crashes, created_at, started_at, finished_at, deadline_at, options, labels
   FROM runs
  WHERE run_id = ?1";

// Here and below: `IS NOT NULL` repeats what the comparison says already. Turso takes a partial index only
// when the condition of the index is spelled out; SQLite uses the same indexes either way.
const FIND_BUSINESS: &str =
    "SELECT runs.namespace_id, runs.run_id, runs.business_id, runs.workflow_type, runs.task_queue, runs.state,
        runs.version, runs.epoch, runs.attempts, runs.dispatch_count, runs.crashes, runs.created_at,
        runs.started_at, runs.finished_at, runs.deadline_at, runs.options, runs.labels,
        events.kinds, events.detail, events.payload
   FROM runs
   JOIN events ON events.run_id = runs.run_id AND events.first_seq = 1
  WHERE runs.namespace_id = ?1
    AND runs.business_id = ?2
    AND runs.business_id IS NOT NULL";

const INPUT_OF_RUN: &str = "SELECT events.kinds, events.detail, events.payload
   FROM runs
   JOIN events ON events.run_id = runs.run_id AND events.first_seq = 1
  WHERE runs.run_id = ?1
    AND runs.namespace_id = ?2";

const DUE: &str = "SELECT due_at, run_id
   FROM runs INDEXED BY runs_due
  WHERE namespace_id = ?1
    AND task_queue = ?2
    AND workflow_type = ?3
    AND due_at <= ?4
    AND due_at IS NOT NULL
  ORDER BY due_at, run_id
  LIMIT ?5";

const NEXT_DUE: &str = "SELECT due_at, run_id
   FROM runs INDEXED BY runs_due
  WHERE namespace_id = ?1
    AND task_queue = ?2
    AND workflow_type = ?3
    AND due_at IS NOT NULL
  ORDER BY due_at, run_id
  LIMIT ?4";

const SWEEP_DUE: &str = "SELECT run_id, namespace_id
   FROM runs INDEXED BY runs_sweep
  WHERE sweep_at <= ?1
    AND sweep_at IS NOT NULL
  ORDER BY sweep_at, run_id
  LIMIT ?2";

const NEXT_SWEEP: &str = "SELECT sweep_at, run_id
   FROM runs INDEXED BY runs_sweep
  WHERE sweep_at IS NOT NULL
  ORDER BY sweep_at, run_id
  LIMIT ?1";

const LOAD_WORKER: &str =
    "SELECT namespace_id, worker_id, task_queue, hostname, pid, version, workflow_types, labels,
        max_concurrent, status, completed_total, failed_total, registered_at, heartbeat_at, deregistered_at, row_version
   FROM workers
  WHERE worker_id = ?1";

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

// A write that finds no row: it needs the write lock and nothing else. By the key, because Turso would look
// at every row for `1 = 0`.
const PROBE: &str = "UPDATE workers
    SET pid = pid
  WHERE worker_id = x''";

const STALE_WORKERS: &str = "SELECT worker_id
   FROM workers INDEXED BY workers_alive
  WHERE status <> 3
    AND heartbeat_at < ?1
  ORDER BY heartbeat_at, worker_id
  LIMIT ?2";

const UNNAME_RUN: &str = "UPDATE runs
    SET business_id = NULL
  WHERE run_id = ?1";

const INSERT_RUN: &str =
    "INSERT INTO runs (namespace_id, run_id, business_id, workflow_type, task_queue, status, state,
                  version, epoch, due_at, sweep_at, lease_worker, attempts, dispatch_count, crashes,
                  created_at, started_at, finished_at, deadline_at, options, error_code, labels, schedule_id)
 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
         ?21, ?22, ?23)";

const UPDATE_RUN: &str = "UPDATE runs
    SET status = ?2, state = ?3, epoch = ?4, due_at = ?5, sweep_at = ?6, lease_worker = ?7,
        attempts = ?8, dispatch_count = ?9, crashes = ?10, started_at = ?11, finished_at = ?12,
        version = ?13, deadline_at = ?14, error_code = ?15, labels = ?16
  WHERE run_id = ?1
    AND version = ?13 - 1";

const PUT_LABEL: &str = "INSERT INTO run_labels (run_id, name, namespace_id, value, created_at, finished_at)
 VALUES (?1, ?2, ?3, ?4, ?5, ?6)
     ON CONFLICT (run_id, name) DO UPDATE
    SET value = excluded.value,
        finished_at = excluded.finished_at";

const INSERT_WORKER: &str =
    "INSERT INTO workers (worker_id, namespace_id, task_queue, hostname, pid, version, workflow_types, labels,
                     max_concurrent, status, completed_total, failed_total, registered_at, heartbeat_at,
                     deregistered_at, row_version, handles_failures)
 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";

const UPDATE_WORKER: &str = "UPDATE workers
    SET namespace_id = ?2, task_queue = ?3, hostname = ?4, pid = ?5, version = ?6, workflow_types = ?7,
        labels = ?8, max_concurrent = ?9, status = ?10, completed_total = ?11, failed_total = ?12,
        registered_at = ?13, heartbeat_at = ?14, deregistered_at = ?15, row_version = ?16,
        handles_failures = ?17
  WHERE worker_id = ?1
    AND row_version = ?18";

/// Every statement of the write path; a test prepares each on a real database.
pub const STATEMENTS: &[(&str, &str)] = &[
    ("LOAD_RUN", LOAD_RUN),
    ("FIND_BUSINESS", FIND_BUSINESS),
    ("INPUT_OF_RUN", INPUT_OF_RUN),
    ("DUE", DUE),
    ("NEXT_DUE", NEXT_DUE),
    ("SWEEP_DUE", SWEEP_DUE),
    ("NEXT_SWEEP", NEXT_SWEEP),
    ("LOAD_WORKER", LOAD_WORKER),
    ("HANDLER_QUEUE", HANDLER_QUEUE),
    ("LEASED_BY", LEASED_BY),
    ("PROBE", PROBE),
    ("STALE_WORKERS", STALE_WORKERS),
    ("UNNAME_RUN", UNNAME_RUN),
    ("INSERT_RUN", INSERT_RUN),
    ("UPDATE_RUN", UPDATE_RUN),
    ("PUT_LABEL", PUT_LABEL),
    ("INSERT_WORKER", INSERT_WORKER),
    ("UPDATE_WORKER", UPDATE_WORKER),
];

/// The connection that writes, and the lock that makes it the only one.
pub struct SqliteBackend {
    db: Db,
    lock: FileLock,
    check: Check,
}

impl SqliteBackend {
    pub fn new(db: Db, lock: FileLock, check: Check) -> Self {
        SqliteBackend { db, lock, check }
    }

    pub(crate) fn db(&self) -> &Db {
        &self.db
    }

    fn load_one(&self, id: RunId) -> Result<Option<Aggregate>, StoreError> {
        let Some(run) = self.db.first(LOAD_RUN, bind![id], row::run)? else {
            return Ok(None);
        };
        let mut aggregate = Aggregate::new(run, 0);
        events::load(&self.db, &mut aggregate)?;
        Ok(Some(aggregate))
    }

    fn write_workers(&self, changes: &Changes<Worker>) -> Result<(), StoreError> {
        let Changes { deleted, implicit, inserted, updated } = changes;
        debug_assert!(
            deleted.is_empty() && implicit.is_empty(),
            "a worker registers, and a sweep forgets it"
        );
        for worker in inserted {
            self.put_worker(INSERT_WORKER, worker, None)?;
        }
        for (from, worker) in updated {
            if self.put_worker(UPDATE_WORKER, worker, Some(*from))? != 1 {
                return Err(StoreError::Conflict("a worker has another version than memory says".into()));
            }
        }
        Ok(())
    }

    fn put_worker(&self, sql: &str, worker: &Worker, from: Option<u64>) -> Result<usize, StoreError> {
        let registration = &worker.registration;
        let (types, labels) = (json(&registration.workflow_types), json(&registration.labels));
        let (status, handles_failures) = (worker.status as u8, registration.handles_failures());
        let values = bind![
            worker.id,
            registration.namespace,
            registration.task_queue,
            registration.hostname,
            registration.pid,
            registration.version,
            types,
            labels,
            registration.max_concurrent,
            status,
            worker.completed_total,
            worker.failed_total,
            worker.registered_at,
            worker.heartbeat_at,
            worker.deregistered_at,
            worker.row_version,
            handles_failures,
            from,
        ];
        self.db.execute(sql, &values[..values.len() - usize::from(from.is_none())])
    }
}

impl Backend for SqliteBackend {
    async fn begin(&mut self) -> Result<(), StoreError> {
        self.lock.still_there()?;
        self.db.begin()
    }

    async fn commit(&mut self) -> Result<(), StoreError> {
        self.db.commit()
    }

    async fn probe(&mut self) -> Result<(), StoreError> {
        self.db.execute(PROBE, &[]).map(drop)
    }

    async fn rollback(&mut self) {
        self.db.rollback();
    }

    async fn load(&mut self, keys: &[RunKey]) -> Result<Loaded, StoreError> {
        let mut loaded = Loaded::default();
        for key in keys {
            match self.load_one(key.id) {
                Ok(found) => loaded.runs.extend(found),
                Err(StoreError::Corrupt(why)) => loaded.unreadable.push((key.clone(), why)),
                Err(other) => return Err(other),
            }
        }
        Ok(loaded)
    }

    async fn find_business(&mut self, ids: &[(Name, Name)]) -> Result<Vec<FoundBusiness>, StoreError> {
        let mut found = Vec::new();
        for (place, (namespace, business_id)) in ids.iter().enumerate() {
            found.extend(self.db.first(FIND_BUSINESS, bind![namespace, business_id], |row| {
                let input = events::input(row, RUN_WIDTH);
                FoundBusiness::of(place, row.get(1)?, input, row::run(row))
            })?);
        }
        Ok(found)
    }

    async fn input(&mut self, key: &RunKey) -> Result<Option<Payload>, StoreError> {
        let read = |row: &Row<'_>| Ok(events::input(row, 0)?.unwrap_or_else(|| Payload::new(&b""[..])));
        self.db.first(INPUT_OF_RUN, bind![key.id, key.namespace], read)
    }

    async fn due(&mut self, query: &DueQuery<'_>) -> Result<Vec<DueRun>, StoreError> {
        let mut found = Vec::new();
        for (key, wanted) in query.keys.iter().enumerate() {
            let QueueKey { namespace, task_queue, workflow_type } = &wanted.key;
            // What is left alone stands in the index like everything else: it is read and passed over.
            let limit = wanted.len + query.aside.len();
            let before = found.len();
            self.db.rows(DUE, bind![namespace, task_queue, workflow_type, query.now, limit], |row| {
                let (at, run) = (row.get(0)?, row.get(1)?);
                if !query.aside.contains(&run) {
                    found.push(DueRun { at, run, key });
                }
                Ok(match found.len() - before < wanted.len {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                })
            })?;
        }
        found.sort_unstable();
        Ok(found)
    }

    async fn next_due(
        &mut self,
        keys: &[DueKey],
        aside: &[RunId],
    ) -> Result<Vec<Option<Timestamp>>, StoreError> {
        let next = |wanted: &DueKey| {
            let QueueKey { namespace, task_queue, workflow_type } = &wanted.key;
            let limit = wanted.len + aside.len() + 1;
            let times = self.db.all(NEXT_DUE, bind![namespace, task_queue, workflow_type, limit], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
            Ok(times.into_iter().filter(|(_, run)| !aside.contains(run)).nth(wanted.len).map(|(at, _)| at))
        };
        keys.iter().map(next).collect()
    }

    async fn sweep_due(
        &mut self,
        _: Timestamp,
        now: Timestamp,
        limit: usize,
        aside: &[RunId],
    ) -> Result<Vec<RunKey>, StoreError> {
        let mut keys = self.db.all(SWEEP_DUE, bind![now, limit + aside.len()], run_key)?;
        keys.retain(|key| !aside.contains(&key.id));
        keys.truncate(limit);
        Ok(keys)
    }

    async fn next_sweep(&mut self, _: Timestamp, aside: &[RunId]) -> Result<Option<Timestamp>, StoreError> {
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let times: Vec<(Timestamp, RunId)> = self.db.all(NEXT_SWEEP, bind![aside.len() + 1], read)?;
        Ok(times.into_iter().find(|(_, run)| !aside.contains(run)).map(|(at, _)| at))
    }

    async fn living(&mut self, keys: &[RunKey]) -> Result<Vec<RunId>, StoreError> {
        retention::living(&self.db, keys)
    }

    async fn retirable(&mut self, query: &RetireQuery<'_>) -> Result<Vec<(RunKey, Timestamp)>, StoreError> {
        retention::retirable(&self.db, query)
    }

    async fn retire(&mut self, keys: &[RunKey]) -> Result<(), StoreError> {
        retention::retire(&self.db, keys)
    }

    async fn purge(&mut self, limit: usize) -> Result<usize, StoreError> {
        retention::purge(&self.db, limit)
    }

    async fn handler_queue(&mut self, namespace: &Name) -> Result<Option<Name>, StoreError> {
        self.db.first(HANDLER_QUEUE, bind![namespace], |row| row.get(0))
    }

    async fn load_workers(&mut self, query: &WorkersQuery<'_>) -> Result<LoadedWorkers, StoreError> {
        // One look-up per worker: SQLite has no round trip that a batch could save.
        let mut loaded = LoadedWorkers::default();
        for id in query.whole.iter().chain(query.known) {
            match self.db.first(LOAD_WORKER, bind![*id], row::worker) {
                Ok(None) => {}
                Ok(Some(worker)) => {
                    let held = self.db.all(LEASED_BY, bind![*id], run_key)?;
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
        self.db.all(LEASED_BY, bind![id], run_key)
    }

    async fn stale_workers(&mut self, before: Timestamp, limit: usize) -> Result<Vec<WorkerId>, StoreError> {
        self.db.all(STALE_WORKERS, bind![before, limit], |row| row.get(0))
    }

    async fn write(&mut self, set: WriteSet) -> Result<(), StoreError> {
        // One execution per row: SQLite has no round trip that a batch could save.
        for key in &set.unnamed {
            self.db.execute(UNNAME_RUN, bind![key.id])?;
        }
        let mut insert = self.db.statement(INSERT_RUN)?;
        for run in &set.inserted {
            insert_run(&mut insert, run)?;
        }
        let mut update = self.db.statement(UPDATE_RUN)?;
        for run in &set.updated {
            if update_run(&mut update, run)? != 1 {
                // We are alone on the file, so memory and disk disagree: reload rather than overwrite.
                return Err(StoreError::Conflict("a run has another version than memory says".into()));
            }
        }
        events::write(&self.db, &set.events)?;
        for label in &set.labels {
            let LabelRow { namespace, run, name, value, created_at, finished_at } = label;
            self.db.execute(PUT_LABEL, bind![run, name, namespace, value, created_at, finished_at])?;
        }
        self.write_workers(&set.workers)?;
        schedules::write(&self.db, &set.schedules)?;
        crate::controls::write(&self.db, &set.namespaces, &set.gates)
    }
}

fn insert_run(insert: &mut Statement<'_>, run: &Run) -> Result<usize, StoreError> {
    insert.execute(bind![
        run.namespace,
        run.id,
        run.business_id,
        run.workflow_type,
        run.task_queue,
        run.state.status() as u8,
        json(&run.state),
        run.version,
        run.epoch,
        run.due_at(),
        run.sweep_at(),
        lease_worker(run),
        run.attempts,
        run.dispatch_count,
        run.crashes,
        run.created_at,
        run.started_at,
        run.finished_at,
        run.deadline_at,
        json(&*run.options),
        run.state.error_code(),
        row::stored_labels(run),
        run.schedule(),
    ])
}

fn update_run(update: &mut Statement<'_>, run: &Run) -> Result<usize, StoreError> {
    update.execute(bind![
        run.id,
        run.state.status() as u8,
        json(&run.state),
        run.epoch,
        run.due_at(),
        run.sweep_at(),
        lease_worker(run),
        run.attempts,
        run.dispatch_count,
        run.crashes,
        run.started_at,
        run.finished_at,
        run.version,
        // Changes when a run is reopened after its deadline.
        run.deadline_at,
        run.state.error_code(),
        row::stored_labels(run),
    ])
}

fn run_key(row: &Row<'_>) -> Result<RunKey, StoreError> {
    Ok(RunKey { id: row.get(0)?, namespace: row.get(1)? })
}

impl Drop for SqliteBackend {
    /// A clean stop leaves everything in the one file, so that copying it is a backup. Should it fail, the
    /// WAL beside it still holds what is missing.
    fn drop(&mut self) {
        self.check.stop();
        if let Err(error) = self.db.move_log() {
            tracing::warn!(%error, "could not move the write-ahead log into the database file");
        }
    }
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
