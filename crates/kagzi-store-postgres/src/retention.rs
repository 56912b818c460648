//! Deleting runs that ended long ago. What another server is deleting at this moment is passed over.

use kagzi_model::Timestamp;
use kagzi_store::{RetentionRows, RetireQuery, RunKey, StoreError};
use tokio_postgres::Row;

use crate::{backend::PostgresBackend, generations, interventions, row};

kagzi_store::statements! {
/// Every statement of retention; a test prepares each on a real database.
STATEMENTS:

// From namespace to namespace along the index, so that no index without a namespace is needed. A namespace's
// retention is read with its runs, so that a longer one holds from its commit on; where none is set, nothing
// is past it (NULL).
const RETIRABLE: &str = "WITH RECURSIVE spaces (name) AS (
    (SELECT namespace_id FROM kagzi.runs
      WHERE finished_at IS NOT NULL AND namespace_id > $1
      ORDER BY namespace_id LIMIT 1)
    UNION ALL
    SELECT next.namespace_id
      FROM spaces
     CROSS JOIN LATERAL (SELECT namespace_id FROM kagzi.runs
                          WHERE finished_at IS NOT NULL AND namespace_id > spaces.name
                          ORDER BY namespace_id LIMIT 1) AS next
), past (name, until) AS (
    SELECT name,
           $2::bigint - 1000 * coalesce((SELECT retention_ms FROM kagzi.namespaces WHERE \
           namespaces.namespace_id = spaces.name), $3::bigint)
      FROM spaces
)
SELECT old.run_id, old.namespace_id, old.created_at
  FROM past
 CROSS JOIN LATERAL (SELECT run_id, namespace_id, created_at
                       FROM kagzi.runs
                      WHERE namespace_id = past.name AND finished_at <= past.until
                      ORDER BY finished_at, run_id
                      LIMIT $4
                        FOR UPDATE SKIP LOCKED) AS old
 LIMIT $4";

const RETIRE: &str = "WITH gone AS (
    DELETE FROM kagzi.runs
     USING unnest($1::text[], $2::uuid[]) AS wanted (namespace_id, run_id)
     WHERE runs.namespace_id = wanted.namespace_id
       AND runs.run_id = wanted.run_id
       AND runs.finished_at IS NOT NULL
 RETURNING runs.namespace_id, runs.run_id
), unlabelled AS (
    DELETE FROM kagzi.run_labels
     USING gone
     WHERE run_labels.namespace_id = gone.namespace_id
       AND run_labels.run_id = gone.run_id
)
INSERT INTO kagzi.retired_runs (namespace_id, run_id)
SELECT namespace_id, run_id
  FROM gone";

// Sees the tombstones of this transaction; those that another server works on are passed over.
const PURGE: &str = "WITH retired AS (
    SELECT namespace_id, run_id
      FROM kagzi.retired_runs
     ORDER BY namespace_id, run_id
     LIMIT 100
       FOR UPDATE SKIP LOCKED
), old AS (
    SELECT events.namespace_id, events.run_id, events.first_seq
      FROM retired
     CROSS JOIN LATERAL (SELECT namespace_id, run_id, first_seq
                           FROM kagzi.events
                          WHERE events.namespace_id = retired.namespace_id
                            AND events.run_id = retired.run_id
                          ORDER BY first_seq
                          LIMIT $1) AS events
     LIMIT $1
), purged AS (
    DELETE FROM kagzi.events
     USING old
     WHERE events.namespace_id = old.namespace_id
       AND events.run_id = old.run_id
       AND events.first_seq = old.first_seq
 RETURNING 1
)
SELECT count(*) FROM purged";

const FORGET_RETIRED: &str = "DELETE FROM kagzi.retired_runs
 WHERE (namespace_id, run_id) IN (SELECT namespace_id, run_id
                                    FROM kagzi.retired_runs
                                   ORDER BY namespace_id, run_id
                                   LIMIT 100
                                     FOR UPDATE SKIP LOCKED)
   AND NOT EXISTS (SELECT 1
                     FROM kagzi.events
                    WHERE events.namespace_id = retired_runs.namespace_id
                      AND events.run_id = retired_runs.run_id)";
}

impl RetentionRows for PostgresBackend {
    async fn retirable(&mut self, query: &RetireQuery<'_>) -> Result<Vec<(RunKey, Timestamp)>, StoreError> {
        let RetireQuery { now, keep_ms, after, limit } = query;
        let rows = self.query(RETIRABLE, &[&&***after, &now.0, keep_ms, &(*limit as i64)]).await?;
        let read = |found: &Row| Ok((row::run_key(found)?, Timestamp(row::get(found, 2)?)));
        rows.iter().map(read).collect()
    }

    async fn retire(&mut self, keys: &[RunKey]) -> Result<(), StoreError> {
        let (namespaces, ids) = row::key_columns(keys);
        self.query(RETIRE, &[&namespaces, &ids]).await?;
        interventions::forget(self, keys).await
    }

    async fn purge(&mut self, limit: usize) -> Result<usize, StoreError> {
        let rows = self.query(PURGE, &[&(limit as i64)]).await?;
        self.query(FORGET_RETIRED, &[]).await?;
        let purged = usize::try_from(row::get::<i64>(&rows[0], 0)?).unwrap_or(0);
        Ok(purged + generations::purge(self, limit.saturating_sub(purged)).await?)
    }
}
