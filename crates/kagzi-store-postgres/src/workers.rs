//! Workers as the lane reads them: any number of them in one flight.

use futures_util::future::{try_join, try_join3};
use kagzi_model::{Name, Registration, RunId, Timestamp, Worker, WorkerId, WorkerStatus};
use kagzi_store::{
    Changes, LoadedWorker, LoadedWorkers, RunKey, StoreError, WorkerRows, WorkersQuery, worker,
};
use tokio_postgres::{Error, Row};
use uuid::Uuid;

use crate::{
    backend::PostgresBackend,
    row,
    session::{Bind, Session},
    write::{Columns, Sending, column, send, text, to_json},
};

kagzi_store::statements! {
/// Every statement about workers on the writing connection; a test prepares each on a real database.
STATEMENTS:

const LOAD_WORKERS: &str = concat!(
    "SELECT ",
    worker!(columns),
    "
   FROM kagzi.workers
  WHERE worker_id = ANY($1)"
);

// Takes the rows' locks, in the order in which everybody takes them, and with them waits for whoever leases
// to the workers at another server.
const STAND_BY: &str = concat!(
    "WITH locked AS (
    SELECT namespace_id, worker_id
      FROM kagzi.workers
     WHERE worker_id = ANY($1)
     ORDER BY worker_id
       FOR UPDATE
)
UPDATE kagzi.workers
   SET stands_by = $2
  FROM locked
 WHERE workers.namespace_id = locked.namespace_id
   AND workers.worker_id = locked.worker_id
RETURNING ",
    worker!(qualified)
);

const STANDING: &str = "SELECT worker_id
   FROM kagzi.workers
  WHERE worker_id = ANY($1)
    AND stands_by = $2";

// Everything that the workers hold. While somebody keeps a transaction open, the index has an entry for
// whatever they have ever held since, so this is asked when a worker comes and when it goes, and never with a
// heartbeat.
const LEASED_BY: &str = "SELECT run_id, namespace_id, lease_worker
   FROM kagzi.runs
  WHERE lease_worker = ANY($1)
  ORDER BY run_id";

// Those of the named runs that the workers still hold: a look at each row by its key, however much the
// workers held before. The limit keeps the planner from beginning with the index of leases, which may be full
// of dead entries.
const STILL_LEASED: &str = "SELECT held.run_id, held.namespace_id, held.lease_worker
   FROM unnest($1::uuid[], $2::text[], $3::uuid[]) AS named (worker_id, namespace_id, run_id)
  CROSS JOIN LATERAL (
        SELECT runs.run_id, runs.namespace_id, runs.lease_worker
          FROM kagzi.runs
         WHERE runs.namespace_id = named.namespace_id
           AND runs.run_id = named.run_id
         LIMIT 1
       ) AS held
  WHERE held.lease_worker = named.worker_id";

// A worker whose heartbeat is being written at this moment is not stale: it is locked, and passed over.
const STALE_WORKERS: &str = "SELECT worker_id
   FROM kagzi.workers
  WHERE status <> 3
    AND heartbeat_at < $1
  ORDER BY heartbeat_at, worker_id
  LIMIT $2
    FOR UPDATE SKIP LOCKED";

// Asked whenever a run fails; the newest worker that registered it decides.
const HANDLER_QUEUE: &str = "SELECT task_queue
   FROM kagzi.workers
  WHERE namespace_id = $1
    AND handles_failures
  ORDER BY registered_at DESC, worker_id DESC
  LIMIT 1";

const FORGET_WORKERS: &str = concat!(
    "DELETE FROM kagzi.workers
  USING (
        SELECT namespace_id, worker_id
          FROM kagzi.workers AS candidate
         WHERE status = 3
           AND deregistered_at < $1
           AND NOT EXISTS (SELECT 1 FROM kagzi.runs WHERE runs.lease_worker = candidate.worker_id)
         ORDER BY deregistered_at
         LIMIT $2
           FOR UPDATE SKIP LOCKED
        ) AS old
  WHERE workers.namespace_id = old.namespace_id
    AND workers.worker_id = old.worker_id
 RETURNING ",
    worker!(qualified)
);

const INSERT_WORKERS: &str = concat!(
    "INSERT INTO kagzi.workers (",
    worker!(inserted),
    ")
 SELECT *
   FROM unnest(",
    worker!(arrays),
    ")"
);

// As with runs: a worker that another server changed since it was read ends the transaction here and now.
const UPDATE_WORKERS: &str = concat!(
    "WITH done AS (
    UPDATE kagzi.workers
       SET ",
    worker!(set_new),
    "
      FROM unnest(",
    worker!(changed_arrays),
    ", $18::bigint[])
           AS new (",
    worker!(changed),
    ", from_version)
     WHERE workers.namespace_id = new.namespace_id
       AND workers.worker_id = new.worker_id
       AND workers.row_version = new.from_version
 RETURNING 1
)
SELECT 1 / (count(*) = cardinality($2))::integer
  FROM done"
);

// A worker that stands by at another server by now has its runs counted there: leasing to it here could
// exceed its limit. As with runs the division ends the transaction. The lock makes a server that takes the
// worker in at this very moment wait for our commit, and count what it brought.
const GUARD_WORKERS: &str = "WITH held AS (
    SELECT 1
      FROM unnest($1::text[], $2::uuid[]) AS given (namespace_id, worker_id)
      JOIN kagzi.workers
        ON workers.namespace_id = given.namespace_id AND workers.worker_id = given.worker_id
     WHERE workers.stands_by = $3
     ORDER BY workers.worker_id
       FOR SHARE OF workers
)
SELECT 1 / (count(*) = cardinality($2))::integer
  FROM held";
}

impl WorkerRows for PostgresBackend {
    async fn handler_queue(&mut self, namespace: &Name) -> Result<Option<Name>, StoreError> {
        let rows = self.query(HANDLER_QUEUE, &[&&**namespace]).await?;
        rows.first().map(|found| row::name(found, 0)).transpose()
    }

    async fn forget_workers(&mut self, before: Timestamp, limit: usize) -> Result<Vec<Worker>, StoreError> {
        let rows = self.query(FORGET_WORKERS, &[&before.0, &(limit as i64)]).await?;
        rows.iter().map(read).collect()
    }

    /// The rows of the workers, and what they hold: all of it, or what is left of what memory knew.
    async fn load_workers(&mut self, query: &WorkersQuery<'_>) -> Result<LoadedWorkers, StoreError> {
        let session = self.session()?;
        let whole = uuids(query.whole);
        let all: Vec<Uuid> = query.whole.iter().chain(query.known).map(|id| id.0).collect();
        let holders: Vec<Uuid> = query.held.iter().map(|(worker, _)| worker.0).collect();
        let namespaces: Vec<&str> = query.held.iter().map(|(_, key)| &*key.namespace).collect();
        let runs: Vec<Uuid> = query.held.iter().map(|(_, key)| key.id.0).collect();
        let (all_bind, whole_bind, held_bind): (Bind<'_>, Bind<'_>, Bind<'_>) =
            (&[&all], &[&whole], &[&holders, &namespaces, &runs]);
        let found = try_join3(
            ask(&session, LOAD_WORKERS, !all.is_empty(), all_bind),
            ask(&session, LEASED_BY, !whole.is_empty(), whole_bind),
            ask(&session, STILL_LEASED, !runs.is_empty(), held_bind),
        );
        let (rows, leased, still) = self.flight(&session, found).await?;
        loaded(&rows, leased.iter().chain(&still))
    }

    /// The same for workers that stand by here from now on.
    async fn stand_by(&mut self, ids: &[WorkerId]) -> Result<LoadedWorkers, StoreError> {
        let (session, server) = (self.session()?, self.server());
        let ids = uuids(ids);
        // What they hold is looked for when the rows are locked: each statement sees what was committed
        // before it.
        let (stand_by, leased_by): (Bind<'_>, Bind<'_>) = (&[&ids, &server], &[&ids]);
        let found = try_join(session.query(STAND_BY, stand_by), session.query(LEASED_BY, leased_by));
        let (rows, leased) = self.flight(&session, found).await?;
        loaded(&rows, leased.iter())
    }

    async fn standing(&mut self, ids: &[WorkerId]) -> Result<Vec<WorkerId>, StoreError> {
        let server = self.server();
        let rows = self.query(STANDING, &[&uuids(ids), &server]).await?;
        rows.iter().map(|found| row::get(found, 0).map(WorkerId)).collect()
    }

    async fn leased_by(&mut self, id: WorkerId) -> Result<Vec<RunKey>, StoreError> {
        let rows = self.query(LEASED_BY, &[&vec![id.0]]).await?;
        rows.iter().map(row::run_key).collect()
    }

    async fn stale_workers(&mut self, before: Timestamp, limit: usize) -> Result<Vec<WorkerId>, StoreError> {
        let rows = self.query(STALE_WORKERS, &[&before.0, &(limit as i64)]).await?;
        rows.iter().map(|found| row::get(found, 0).map(WorkerId)).collect()
    }
}

fn uuids(ids: &[WorkerId]) -> Vec<Uuid> {
    ids.iter().map(|id| id.0).collect()
}

/// A statement of the flight, unless there is nothing to ask.
async fn ask(session: &Session, sql: &str, wanted: bool, bind: Bind<'_>) -> Result<Vec<Row>, Error> {
    if wanted { session.query(sql, bind).await } else { Ok(Vec::new()) }
}

fn loaded<'r>(rows: &[Row], held: impl Iterator<Item = &'r Row>) -> Result<LoadedWorkers, StoreError> {
    let mut loaded = LoadedWorkers::default();
    for found in rows {
        match read(found) {
            Ok(worker) => loaded.workers.push(LoadedWorker { worker, holds: Vec::new() }),
            Err(StoreError::Corrupt(why)) => loaded.unreadable.push((WorkerId(row::get(found, 1)?), why)),
            Err(other) => return Err(other),
        }
    }
    loaded.workers.sort_unstable_by_key(|loaded| loaded.worker.id);
    for found in held {
        let (run, holder) = (RunId(row::get(found, 0)?), WorkerId(row::get(found, 2)?));
        if let Ok(at) = loaded.workers.binary_search_by_key(&holder, |loaded| loaded.worker.id) {
            loaded.workers[at].holds.push(run);
        }
    }
    Ok(loaded)
}

/// The statement that proves that workers which are given runs still stand by here.
pub fn guard(session: &Session, server: Uuid, leased_to: Vec<(Name, WorkerId)>) -> Option<Sending<'_>> {
    if leased_to.is_empty() {
        return None;
    }
    Some(Box::pin(async move {
        let namespaces: Vec<&str> = leased_to.iter().map(|(namespace, _)| &**namespace).collect();
        let ids: Vec<Uuid> = leased_to.iter().map(|(_, worker)| worker.0).collect();
        session.query(GUARD_WORKERS, &[&namespaces, &ids, &server]).await.map(drop)
    }))
}

/// The statements that write what changed, in order.
pub fn statements(session: &Session, changes: Changes<Worker>) -> Vec<Sending<'_>> {
    let Changes { deleted, implicit, mut inserted, mut updated } = changes;
    debug_assert!(deleted.is_empty() && implicit.is_empty(), "a worker registers, and a sweep forgets it");
    inserted.sort_unstable_by_key(|worker| worker.id);
    updated.sort_unstable_by_key(|(_, worker)| worker.id);
    let mut sending: Vec<Sending<'_>> = Vec::new();
    if !inserted.is_empty() {
        sending.push(Box::pin(async move { send(session, INSERT_WORKERS, columns(&inserted)).await }));
    }
    if !updated.is_empty() {
        sending.push(Box::pin(async move {
            let (from, rows): (Vec<u64>, Vec<Worker>) = updated.into_iter().unzip();
            let mut columns = columns(&rows);
            columns.push(column(&from, |version| version.cast_signed()));
            send(session, UPDATE_WORKERS, columns).await
        }));
    }
    sending
}

fn columns(workers: &[Worker]) -> Columns<'_> {
    let columns: [_; worker!(inserted_width)] = [
        column(workers, |worker| &*worker.registration.namespace),
        column(workers, |worker| worker.id.0),
        column(workers, |worker| &*worker.registration.task_queue),
        column(workers, |worker| text(&worker.registration.hostname)),
        column(workers, |worker| worker.registration.pid),
        column(workers, |worker| text(&worker.registration.version)),
        column(workers, |worker| to_json(&worker.registration.workflow_types)),
        column(workers, |worker| to_json(&worker.registration.labels)),
        column(workers, |worker| i64::from(worker.registration.max_concurrent)),
        column(workers, |worker| worker.status as i16),
        column(workers, |worker| worker.completed_total),
        column(workers, |worker| worker.failed_total),
        column(workers, |worker| worker.registered_at.0),
        column(workers, |worker| worker.heartbeat_at.0),
        column(workers, |worker| worker.deregistered_at.map(|at| at.0)),
        column(workers, |worker| worker.row_version.cast_signed()),
        column(workers, |worker| worker.registration.handles_failures()),
    ];
    columns.into()
}

/// The columns that are a worker's place in a list.
pub const PLACE: (usize, usize) = (12, 1);

/// Reads a worker. An unknown status is corruption, never "offline".
pub fn read(row: &Row) -> Result<Worker, StoreError> {
    let status: i16 = row::get(row, 9)?;
    Ok(Worker {
        id: WorkerId(row::get(row, 1)?),
        registration: Registration {
            namespace: row::name(row, 0)?,
            task_queue: row::name(row, 2)?,
            workflow_types: row::json(row, 6)?,
            hostname: row::name(row, 3)?,
            pid: row::get(row, 4)?,
            version: row::name(row, 5)?,
            max_concurrent: u32::try_from(row::get::<i64>(row, 8)?).unwrap_or(u32::MAX),
            labels: row::json(row, 7)?,
        },
        status: WorkerStatus::from_number(status.into())
            .ok_or_else(|| StoreError::Corrupt(format!("unknown worker status {status}")))?,
        completed_total: row::get(row, 10)?,
        failed_total: row::get(row, 11)?,
        registered_at: Timestamp(row::get(row, 12)?),
        heartbeat_at: Timestamp(row::get(row, 13)?),
        deregistered_at: row::get::<Option<i64>>(row, 14)?.map(Timestamp),
        row_version: row::get::<i64>(row, 15)?.cast_unsigned(),
    })
}
