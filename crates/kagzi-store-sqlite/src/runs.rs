//! Runs: the statements about their table.

use std::{ops::ControlFlow, sync::Arc};

use kagzi_model::{Aggregate, Labels, Name, Payload, Run, RunId, State, Timestamp};
use kagzi_store::{
    DueKey, DueQuery, DueRun, FoundBusiness, Loaded, OrderBy, QueueKey, RunKey, RunRows, StoreError, run,
};

use crate::{
    backend::SqliteBackend,
    db::Db,
    events,
    value::{Row, Value, bind, json, unreadable},
};

kagzi_store::statements! {
/// Every statement about runs on the writing connection; a test prepares each on a real database.
STATEMENTS:

const LOAD_RUN: &str = concat!(
    "SELECT ",
    run!(columns),
    "
   FROM runs
  WHERE run_id = ?1"
);

// Here and below: `IS NOT NULL` repeats what the comparison says already. Turso takes a partial index only
// when the condition of the index is spelled out; SQLite uses the same indexes either way.
const FIND_BUSINESS: &str = concat!(
    "SELECT ",
    run!(qualified),
    ", events.kinds, events.detail, events.payload
   FROM runs
   JOIN events ON events.run_id = runs.run_id AND events.first_seq = 1
  WHERE runs.namespace_id = ?1
    AND runs.business_id = ?2
    AND runs.business_id IS NOT NULL"
);

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

const LIVING: &str = "SELECT 1
   FROM runs
  WHERE run_id = ?1
    AND namespace_id = ?2
    AND finished_at IS NULL";

const UNNAME_RUN: &str = "UPDATE runs
    SET business_id = NULL
  WHERE run_id = ?1";

const INSERT_RUN: &str = concat!(
    "INSERT INTO runs (",
    run!(inserted),
    ")
 VALUES (",
    run!(values),
    ")"
);

const UPDATE_RUN: &str = concat!(
    "UPDATE runs
    SET ",
    run!(set),
    "
  WHERE run_id = ?2
    AND version = ?3 - 1"
);
}

impl RunRows for SqliteBackend {
    async fn load(&mut self, keys: &[RunKey]) -> Result<Loaded, StoreError> {
        let mut loaded = Loaded::default();
        for key in keys {
            match load_one(self.db(), key.id) {
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
            found.extend(self.db().first(FIND_BUSINESS, bind![namespace, business_id], |row| {
                let input = events::input(row, run!(width));
                FoundBusiness::of(place, row.get(1)?, input, read(row))
            })?);
        }
        Ok(found)
    }

    async fn input(&mut self, key: &RunKey) -> Result<Option<Payload>, StoreError> {
        let read = |row: &Row<'_>| Ok(events::input(row, 0)?.unwrap_or_else(|| Payload::new(&b""[..])));
        self.db().first(INPUT_OF_RUN, bind![key.id, key.namespace], read)
    }

    async fn due(&mut self, query: &DueQuery<'_>) -> Result<Vec<DueRun>, StoreError> {
        let mut found = Vec::new();
        for (key, wanted) in query.keys.iter().enumerate() {
            let QueueKey { namespace, task_queue, workflow_type } = &wanted.key;
            // What is left alone stands in the index like everything else: it is read and passed over.
            let limit = wanted.len + query.aside.len();
            let before = found.len();
            self.db().rows(DUE, bind![namespace, task_queue, workflow_type, query.now, limit], |row| {
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
            let times =
                self.db().all(NEXT_DUE, bind![namespace, task_queue, workflow_type, limit], |row| {
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
        let mut keys = self.db().all(SWEEP_DUE, bind![now, limit + aside.len()], run_key)?;
        keys.retain(|key| !aside.contains(&key.id));
        keys.truncate(limit);
        Ok(keys)
    }

    async fn next_sweep(&mut self, _: Timestamp, aside: &[RunId]) -> Result<Option<Timestamp>, StoreError> {
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let times: Vec<(Timestamp, RunId)> = self.db().all(NEXT_SWEEP, bind![aside.len() + 1], read)?;
        Ok(times.into_iter().find(|(_, run)| !aside.contains(run)).map(|(at, _)| at))
    }

    async fn living(&mut self, keys: &[RunKey]) -> Result<Vec<RunId>, StoreError> {
        let mut living = Vec::new();
        for RunKey { id, namespace } in keys {
            if self.db().first(LIVING, bind![id, namespace], |row| row.get::<i64>(0))?.is_some() {
                living.push(*id);
            }
        }
        Ok(living)
    }
}

fn load_one(db: &Db, id: RunId) -> Result<Option<Aggregate>, StoreError> {
    let Some(run) = db.first(LOAD_RUN, bind![id], read)? else {
        return Ok(None);
    };
    let mut aggregate = Aggregate::before_history(run);
    events::load(db, &mut aggregate)?;
    Ok(Some(aggregate))
}

/// Lets runs give up their business ids, before others take them.
pub fn unname(db: &Db, keys: &[RunKey]) -> Result<(), StoreError> {
    keys.iter().try_for_each(|key| db.execute(UNNAME_RUN, bind![key.id]).map(drop))
}

/// Writes new runs.
pub fn insert(db: &Db, runs: &[Run]) -> Result<(), StoreError> {
    let mut insert = db.statement(INSERT_RUN)?;
    runs.iter().try_for_each(|run| bound(run, |values| insert.execute(values)).map(drop))
}

/// Writes changed runs.
pub fn update(db: &Db, runs: &[Run]) -> Result<(), StoreError> {
    let mut update = db.statement(UPDATE_RUN)?;
    for run in runs {
        if changed(run, |values| update.execute(values))? != 1 {
            // We are alone on the file, so memory and disk disagree: reload rather than overwrite.
            return Err(StoreError::Conflict("a run has another version than memory says".into()));
        }
    }
    Ok(())
}

/// The values of a change.
fn changed<T>(run: &Run, write: impl FnOnce(&[Value<'_>; run!(changed_width)]) -> T) -> T {
    write(bind![
        run.namespace,
        run.id,
        run.version,
        json(&run.state),
        run.epoch,
        run.attempts,
        run.dispatch_count,
        run.crashes,
        run.started_at,
        run.finished_at,
        // Changes when a run is reopened after its deadline.
        run.deadline_at,
        stored_labels(run),
        run.sweep_at(),
        run.state.status() as u8,
        run.due_at(),
        run.lease().map(|lease| lease.worker),
        run.state.error_code(),
    ])
}

/// The values of an insertion: those of a change, and what never changes.
fn bound<T>(run: &Run, write: impl FnOnce(&[Value<'_>; run!(inserted_width)]) -> T) -> T {
    changed(run, |changed| {
        let mut values = [Value::Null; run!(inserted_width)];
        values[..changed.len()].copy_from_slice(changed);
        let (options, schedule) = (json(&*run.options), run.schedule());
        let fixed =
            bind![run.business_id, run.workflow_type, run.task_queue, run.created_at, options, schedule,];
        values[changed.len()..].copy_from_slice(fixed);
        write(&values)
    })
}

/// The columns that are a run's place in a list.
pub fn place(order: OrderBy) -> (usize, usize) {
    match order {
        OrderBy::CreatedAt => (16, 1),
        OrderBy::FinishedAt => (9, 1),
    }
}

/// Reads a run.
pub fn read(row: &Row<'_>) -> Result<Run, StoreError> {
    let state: State = row.json(3)?;
    // Only an ended run stores a time here that does not follow from the rest.
    let close_at = row.get::<Option<Timestamp>>(12)?.filter(|_| state.finished());
    Ok(Run {
        namespace: row.get(0)?,
        id: row.get(1)?,
        version: row.get(2)?,
        state,
        epoch: row.get(4)?,
        attempts: row.get(5)?,
        dispatch_count: row.get(6)?,
        crashes: row.get(7)?,
        started_at: row.get(8)?,
        finished_at: row.get(9)?,
        deadline_at: row.get(10)?,
        close_at,
        labels: row.get::<Option<String>>(11)?.map_or(Ok(Labels::default()), |text| labels(11, &text))?,
        business_id: row.get(13)?,
        workflow_type: row.get(14)?,
        task_queue: row.get(15)?,
        created_at: row.get(16)?,
        options: Arc::new(row.json(17)?),
        generation: row.get::<Option<u32>>(18)?.unwrap_or(1),
        first_seq: row.get::<Option<u64>>(19)?.unwrap_or(1),
    })
}

/// Reads the key of a run: run_id, namespace_id.
pub fn run_key(row: &Row<'_>) -> Result<RunKey, StoreError> {
    Ok(RunKey { id: row.get(0)?, namespace: row.get(1)? })
}

/// The labels as stored: nothing at all for the many runs that have none.
fn stored_labels(run: &Run) -> Option<String> {
    (!run.labels.is_empty()).then(|| json(&run.labels))
}

fn labels(at: usize, text: &str) -> Result<Labels, StoreError> {
    serde_json::from_str(text).map_err(|error| unreadable(at, error))
}
