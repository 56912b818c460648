//! Questions to people: their rows, for the writer and for readers.

use async_trait::async_trait;
use kagzi_model::{
    Name, NounRow, RunKey, Timestamp,
    intervention::{Intervention, InterventionKey, InterventionState, Notice},
};
use kagzi_store::{
    Changes, DueQuestion, InterventionFilter, InterventionReads, InterventionRows, Page, PageRequest,
    StoreError, TakeNotices, asked, intervention,
    listing::{self, SQLITE},
};

use crate::{
    backend::SqliteBackend,
    db::Db,
    notices, nouns,
    reads::{SqliteReads, list_page},
    value::{Bind, Row, Value, bind, json},
};

kagzi_store::statements! {
/// Every fixed statement about questions; a test prepares each on a real database.
STATEMENTS:

const LOAD_QUESTION: &str = concat!(
    "SELECT ",
    intervention!(columns),
    "
   FROM interventions
  WHERE namespace_id = ?1
    AND intervention_id = ?2"
);

const DUE_QUESTIONS: &str = "SELECT namespace_id, intervention_id, run_id
   FROM interventions INDEXED BY interventions_due
  WHERE next_at <= ?1
    AND next_at IS NOT NULL
  ORDER BY next_at, intervention_id
  LIMIT ?2";

const NEXT_QUESTION: &str = "SELECT next_at
   FROM interventions INDEXED BY interventions_due
  WHERE next_at IS NOT NULL
  ORDER BY next_at, intervention_id
  LIMIT 1";

const COUNT_ASKED: &str = "SELECT count(*)
   FROM (SELECT 1
           FROM intervention_assignees INDEXED BY assignees_by_state
          WHERE namespace_id = ?1
            AND assignee = ?2
            AND state = ?3
          LIMIT ?4)";

// Their ids are in the order of their times.
const OLDEST_ASKED: &str = "SELECT namespace_id, intervention_id
   FROM intervention_assignees INDEXED BY assignees_by_state
  WHERE namespace_id = ?1
    AND assignee = ?2
    AND state = ?3
  ORDER BY due_at, intervention_id
  LIMIT 1";

const INSERT_QUESTION: &str = concat!(
    "INSERT INTO interventions (",
    intervention!(inserted),
    ")
 VALUES (",
    intervention!(values),
    ")"
);

const UPDATE_QUESTION: &str = concat!(
    "UPDATE interventions
    SET ",
    intervention!(set),
    "
  WHERE namespace_id = ?1
    AND intervention_id = ?2
    AND version = ?9"
);

const DELETE_ASKED: &str = "DELETE FROM intervention_assignees
  WHERE namespace_id = ?1
    AND intervention_id = ?2";

const INSERT_ASKED: &str =
    "INSERT INTO intervention_assignees (namespace_id, intervention_id, assignee, state, due_at)
 VALUES (?1, ?2, ?3, ?4, ?5)";

const QUESTIONS_OF_RUN: &str = "SELECT namespace_id, intervention_id
   FROM interventions INDEXED BY interventions_by_run
  WHERE namespace_id = ?1
    AND run_id = ?2";

const DELETE_QUESTION: &str = "DELETE FROM interventions
  WHERE namespace_id = ?1
    AND intervention_id = ?2";
}

impl InterventionRows for SqliteBackend {
    async fn load_intervention(&mut self, key: &InterventionKey) -> Result<Option<Intervention>, StoreError> {
        self.db().first(LOAD_QUESTION, bind![key.namespace, key.id], read)
    }

    async fn due_interventions(
        &mut self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueQuestion>, StoreError> {
        self.db().all(DUE_QUESTIONS, bind![now, limit], |row| {
            let key = read_key(row)?;
            let run = RunKey::new(key.namespace.clone(), row.get(2)?);
            Ok((key, run))
        })
    }

    async fn next_intervention(&mut self) -> Result<Option<Timestamp>, StoreError> {
        self.db().first(NEXT_QUESTION, &[], |row| row.get(0))
    }

    async fn pending_of(&mut self, namespace: &Name, person: &Name, max: usize) -> Result<usize, StoreError> {
        let bound = bind![namespace, person, InterventionState::Pending as u8, max];
        let count = self.db().first(COUNT_ASKED, bound, |row| row.get::<i64>(0))?;
        Ok(usize::try_from(count.unwrap_or(0)).unwrap_or(0))
    }

    async fn queued_of(
        &mut self,
        namespace: &Name,
        person: &Name,
    ) -> Result<Option<InterventionKey>, StoreError> {
        self.db().first(OLDEST_ASKED, bind![namespace, person, InterventionState::Queued as u8], read_key)
    }

    async fn all_nouns(
        &mut self,
        namespace: &Name,
        kind: &str,
        limit: usize,
    ) -> Result<Vec<NounRow>, StoreError> {
        nouns::behind(self.db(), namespace, &Name::from(kind), &Name::empty(), limit)
    }

    async fn take_notices(&mut self, now: Timestamp, take: TakeNotices) -> Result<Vec<Notice>, StoreError> {
        notices::take(self.db(), now, take)
    }
}

/// Writes what changed. We are alone on the file, so a row that is not as memory says means: reload.
pub fn write(db: &Db, changes: &Changes<Intervention>) -> Result<(), StoreError> {
    let Changes { deleted, implicit, inserted, updated } = changes;
    debug_assert!(deleted.is_empty() && implicit.is_empty(), "a question goes with its run");
    for row in inserted {
        let kind = row.ask.kind as u8;
        one(bound(row, &[row.run.value(), kind.value()], |all| db.execute(INSERT_QUESTION, all))?)?;
    }
    for (from, row) in updated {
        one(bound(row, &[from.value()], |all| db.execute(UPDATE_QUESTION, all))?)?;
        db.execute(DELETE_ASKED, bind![row.key.namespace, row.key.id])?;
    }
    for row in changes.rows() {
        for name in asked(row) {
            let (state, due_at) = (row.state as u8, row.due_at());
            db.execute(INSERT_ASKED, bind![row.key.namespace, row.key.id, name, state, due_at])?;
        }
    }
    Ok(())
}

/// Deletes the questions of a run that is retired, and what was told of them.
pub fn forget(db: &Db, namespace: &Name, run: kagzi_model::RunId) -> Result<(), StoreError> {
    for key in db.all(QUESTIONS_OF_RUN, bind![namespace, run], read_key)? {
        db.execute(DELETE_ASKED, bind![key.namespace, key.id])?;
        notices::forget(db, &key)?;
        db.execute(DELETE_QUESTION, bind![key.namespace, key.id])?;
    }
    Ok(())
}

/// The values of a change, and those behind them.
fn bound<T>(row: &Intervention, behind: &[Value<'_>], write: impl FnOnce(&[Value<'_>]) -> T) -> T {
    let body = json(row);
    let severity = row.severity.map(|severity| severity as u8);
    let (due_at, state, next_at) = (row.due_at(), row.state as u8, row.next_at());
    let changed: &[Value<'_>; intervention!(changed_width)] =
        bind![row.key.namespace, row.key.id, row.version, body, due_at, state, next_at, severity,];
    let all: Vec<Value<'_>> = changed.iter().chain(behind).copied().collect();
    write(&all)
}

fn one(changed: usize) -> Result<(), StoreError> {
    match changed {
        1 => Ok(()),
        _ => Err(StoreError::Conflict("a question has another version than memory says".into())),
    }
}

#[async_trait]
impl InterventionReads for SqliteReads {
    async fn intervention(&self, key: &InterventionKey) -> Result<Option<Intervention>, StoreError> {
        let key = key.clone();
        self.pool().read(move |db| db.first(LOAD_QUESTION, bind![key.namespace, key.id], read)).await
    }

    async fn interventions(
        &self,
        namespace: &Name,
        filter: &InterventionFilter,
        page: &PageRequest,
    ) -> Result<Page<Intervention>, StoreError> {
        let listing = listing::interventions(SQLITE, intervention!(qualified), namespace, filter);
        let page = *page;
        self.pool().read(move |db| db.transaction(|| list_page(db, &listing, &page, PLACE, read))).await
    }

    async fn notices(&self, key: &InterventionKey) -> Result<Vec<Notice>, StoreError> {
        let key = key.clone();
        self.pool().read(move |db| notices::of(db, &key)).await
    }

    async fn notice_due_since(&self) -> Result<Option<Timestamp>, StoreError> {
        self.pool().read(notices::due_since).await
    }
}

/// The columns that are a question's place in a list.
const PLACE: (usize, usize) = (4, 1);

fn read_key(row: &Row<'_>) -> Result<InterventionKey, StoreError> {
    Ok(InterventionKey { namespace: row.get(0)?, id: row.get(1)? })
}

fn read(row: &Row<'_>) -> Result<Intervention, StoreError> {
    row.json(3)
}
