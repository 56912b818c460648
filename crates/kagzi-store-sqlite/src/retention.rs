//! Deleting runs that ended long ago. Bounded by the caller: nothing here runs long.

use kagzi_model::{Millis, Name, RunId, Timestamp};
use kagzi_store::{RetentionRows, RetireQuery, RunKey, StoreError};

use crate::{backend::SqliteBackend, generations, interventions, value::bind};

kagzi_store::statements! {
/// Every statement of retention; a test prepares each on a real database.
STATEMENTS:

// From namespace to namespace along the index, so that no index without a namespace is needed.
const NEXT_SPACE: &str = "SELECT namespace_id,
        (SELECT retention_ms FROM namespaces WHERE namespaces.namespace_id = runs.namespace_id)
   FROM runs INDEXED BY runs_finished
  WHERE namespace_id > ?1
    AND finished_at IS NOT NULL
  ORDER BY namespace_id
  LIMIT 1";

const RETIRABLE: &str = "SELECT run_id, namespace_id, created_at
   FROM runs INDEXED BY runs_finished
  WHERE namespace_id = ?1
    AND finished_at <= ?2
    AND finished_at IS NOT NULL
  ORDER BY finished_at, run_id
  LIMIT ?3";

const DELETE_RUN: &str = "DELETE FROM runs WHERE run_id = ?1 AND finished_at IS NOT NULL";

const DELETE_LABELS: &str = "DELETE FROM run_labels WHERE run_id = ?1";

const INSERT_RETIRED: &str = "INSERT INTO retired_runs (run_id, namespace_id) VALUES (?1, ?2)";

const NEXT_RETIRED: &str = "SELECT run_id FROM retired_runs ORDER BY run_id LIMIT 1";

const DELETE_EVENTS: &str = "DELETE FROM events
  WHERE run_id = ?1
    AND first_seq IN (SELECT first_seq FROM events WHERE run_id = ?1 ORDER BY first_seq LIMIT ?2)";

const DELETE_RETIRED: &str = "DELETE FROM retired_runs WHERE run_id = ?1";
}

impl RetentionRows for SqliteBackend {
    async fn retirable(&mut self, query: &RetireQuery<'_>) -> Result<Vec<(RunKey, Timestamp)>, StoreError> {
        let mut found = Vec::new();
        let mut space = query.after.clone();
        while found.len() < query.limit {
            let next = self.db().first(NEXT_SPACE, bind![space], |row| {
                Ok((row.get::<Name>(0)?, row.get::<Option<Millis>>(1)?))
            })?;
            let Some((name, own)) = next else { break };
            space = name;
            let Some(until) = query.until(own) else { continue };
            self.db().each(RETIRABLE, bind![space, until, query.limit - found.len()], |row| {
                found.push((RunKey { id: row.get(0)?, namespace: row.get(1)? }, row.get(2)?));
                Ok(())
            })?;
        }
        Ok(found)
    }

    async fn retire(&mut self, keys: &[RunKey]) -> Result<(), StoreError> {
        for RunKey { id: run, namespace } in keys {
            if self.db().execute(DELETE_RUN, bind![run])? == 1 {
                self.db().execute(DELETE_LABELS, bind![run])?;
                interventions::forget(self.db(), namespace, *run)?;
                self.db().execute(INSERT_RETIRED, bind![run, namespace])?;
            }
        }
        Ok(())
    }

    async fn purge(&mut self, limit: usize) -> Result<usize, StoreError> {
        let mut purged = 0;
        while purged < limit {
            let Some(run) = self.db().first(NEXT_RETIRED, &[], |row| row.get::<RunId>(0))? else { break };
            let left = limit - purged;
            let deleted = self.db().execute(DELETE_EVENTS, bind![run, left])?;
            purged += deleted;
            if deleted < left {
                self.db().execute(DELETE_RETIRED, bind![run])?;
            }
        }
        purged += generations::purge(self.db(), limit - purged)?;
        Ok(purged)
    }
}
