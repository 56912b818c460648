//! Workers as the lane reads them: any number of them in one flight.

use futures_util::future::{try_join, try_join3};
use kagzi_model::{RunId, Timestamp, WorkerId};
use kagzi_store::{LoadedWorker, LoadedWorkers, RunKey, StoreError, WorkersQuery};
use tokio_postgres::{Error, Row};
use uuid::Uuid;

use crate::{
    backend::PostgresBackend,
    row,
    session::{Bind, Session},
};

const LOAD_WORKERS: &str =
    "SELECT namespace_id, worker_id, task_queue, hostname, pid, version, workflow_types, labels,
        max_concurrent, status, completed_total, failed_total, registered_at, heartbeat_at, deregistered_at, row_version
   FROM kagzi.workers
  WHERE worker_id = ANY($1)";

// Takes the rows' locks, in the order in which everybody takes them, and with them waits for whoever leases
// to the workers at another server.
const STAND_BY: &str = "WITH locked AS (
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
RETURNING workers.namespace_id, workers.worker_id, workers.task_queue, workers.hostname, workers.pid,
          workers.version, workers.workflow_types, workers.labels, workers.max_concurrent, workers.status,
          workers.completed_total, workers.failed_total, workers.registered_at, workers.heartbeat_at,
          workers.deregistered_at, workers.row_version";

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

/// Every statement about workers that reads; a test prepares each on a real database.
pub const STATEMENTS: &[(&str, &str)] = &[
    ("LOAD_WORKERS", LOAD_WORKERS),
    ("STAND_BY", STAND_BY),
    ("STANDING", STANDING),
    ("LEASED_BY", LEASED_BY),
    ("STILL_LEASED", STILL_LEASED),
    ("STALE_WORKERS", STALE_WORKERS),
];

impl PostgresBackend {
    /// The rows of the workers, and what they hold: all of it, or what is left of what memory knew.
    pub(crate) async fn load_worker_rows(
        &mut self,
        query: &WorkersQuery<'_>,
    ) -> Result<LoadedWorkers, StoreError> {
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
        read(&rows, leased.iter().chain(&still))
    }

    /// The same for workers that stand by here from now on.
    pub(crate) async fn stand_by_rows(&mut self, ids: &[WorkerId]) -> Result<LoadedWorkers, StoreError> {
        let (session, server) = (self.session()?, self.server());
        let ids = uuids(ids);
        // What they hold is looked for when the rows are locked: each statement sees what was committed
        // before it.
        let (stand_by, leased_by): (Bind<'_>, Bind<'_>) = (&[&ids, &server], &[&ids]);
        let found = try_join(session.query(STAND_BY, stand_by), session.query(LEASED_BY, leased_by));
        let (rows, leased) = self.flight(&session, found).await?;
        read(&rows, leased.iter())
    }

    pub(crate) async fn standing_ids(&mut self, ids: &[WorkerId]) -> Result<Vec<WorkerId>, StoreError> {
        let server = self.server();
        let rows = self.query(STANDING, &[&uuids(ids), &server]).await?;
        rows.iter().map(|found| row::get(found, 0).map(WorkerId)).collect()
    }

    pub(crate) async fn leased_by_worker(&mut self, id: WorkerId) -> Result<Vec<RunKey>, StoreError> {
        let rows = self.query(LEASED_BY, &[&vec![id.0]]).await?;
        rows.iter().map(row::run_key).collect()
    }

    pub(crate) async fn stale_worker_ids(
        &mut self,
        before: Timestamp,
        limit: usize,
    ) -> Result<Vec<WorkerId>, StoreError> {
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

fn read<'r>(rows: &[Row], held: impl Iterator<Item = &'r Row>) -> Result<LoadedWorkers, StoreError> {
    let mut loaded = LoadedWorkers::default();
    for found in rows {
        match row::worker(found) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::WORKER_COLUMNS;

    #[test]
    fn column_lists_match_the_reader() {
        let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");

        assert!(squeeze(LOAD_WORKERS).contains(&squeeze(WORKER_COLUMNS)));
        assert!(squeeze(&STAND_BY.replace("workers.", "")).contains(&squeeze(WORKER_COLUMNS)));
    }
}
