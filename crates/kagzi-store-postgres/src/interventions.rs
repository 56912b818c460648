//! Questions to people: their rows, for the writer and for readers.

use std::sync::Arc;

use async_trait::async_trait;
use kagzi_model::{
    Name, NounRow, RunId, RunKey, Timestamp,
    intervention::{Intervention, InterventionKey, InterventionState, Notice},
};
use kagzi_store::{
    Changes, DueQuestion, InterventionFilter, InterventionReads, InterventionRows, Page, PageRequest,
    StoreError, TakeNotices, asked, intervention,
    listing::{self, POSTGRES},
};
use tokio_postgres::Row;

use crate::{
    backend::PostgresBackend,
    notices, nouns,
    reads::{PostgresReads, list_page},
    row,
    session::Session,
    write::{Columns, Sending, column, send, to_json},
};

kagzi_store::statements! {
/// Every fixed statement about questions; a test prepares each on a real database.
STATEMENTS:

const LOAD_QUESTION: &str = concat!(
    "SELECT ",
    intervention!(columns),
    "
   FROM kagzi.interventions
  WHERE namespace_id = $1
    AND intervention_id = $2"
);

// Its run is locked before: whoever answers and whoever ends the run wait for each other there.
const LOCK_QUESTION: &str = concat!(
    "SELECT ",
    intervention!(columns),
    "
   FROM kagzi.interventions
  WHERE namespace_id = $1
    AND intervention_id = $2
    FOR UPDATE"
);

// Without a lock: the run comes first, and what another server did meanwhile is seen when the row is loaded.
const DUE_QUESTIONS: &str = "SELECT namespace_id, intervention_id, run_id
   FROM kagzi.interventions
  WHERE next_at <= $1
  ORDER BY next_at, intervention_id
  LIMIT $2";

const NEXT_QUESTION: &str = "SELECT next_at
   FROM kagzi.interventions
  WHERE next_at IS NOT NULL
  ORDER BY next_at, intervention_id
  LIMIT 1";

const COUNT_ASKED: &str = "SELECT count(*)
   FROM (SELECT 1
           FROM kagzi.intervention_assignees
          WHERE namespace_id = $1
            AND assignee = $2
            AND state = $3
          LIMIT $4) AS pending";

// Their ids are in the order of their times.
const OLDEST_ASKED: &str = "SELECT namespace_id, intervention_id
   FROM kagzi.intervention_assignees
  WHERE namespace_id = $1
    AND assignee = $2
    AND state = $3
  ORDER BY due_at, intervention_id
  LIMIT 1";

const INSERT_QUESTIONS: &str = concat!(
    "INSERT INTO kagzi.interventions (",
    intervention!(inserted),
    ")
 SELECT *
   FROM unnest(",
    intervention!(arrays),
    ")"
);

// As with runs: another version there ends the transaction here and now.
const UPDATE_QUESTIONS: &str = concat!(
    "WITH done AS (
    UPDATE kagzi.interventions
       SET ",
    intervention!(set_new),
    "
      FROM unnest(",
    intervention!(changed_arrays),
    ", $9::bigint[])
           AS new (",
    intervention!(changed),
    ", from_version)
     WHERE interventions.namespace_id = new.namespace_id
       AND interventions.intervention_id = new.intervention_id
       AND interventions.version = new.from_version
 RETURNING 1
)
SELECT 1 / (count(*) = cardinality($2))::integer
  FROM done"
);

const DELETE_ASKED: &str = "DELETE FROM kagzi.intervention_assignees
 USING unnest($1::text[], $2::uuid[]) AS old (namespace_id, intervention_id)
 WHERE intervention_assignees.namespace_id = old.namespace_id
   AND intervention_assignees.intervention_id = old.intervention_id";

const INSERT_ASKED: &str =
    "INSERT INTO kagzi.intervention_assignees (namespace_id, intervention_id, assignee, state, due_at)
 SELECT *
   FROM unnest($1::text[], $2::uuid[], $3::text[], $4::smallint[], $5::bigint[])";

const FORGET_QUESTIONS: &str = "WITH gone AS (
    DELETE FROM kagzi.interventions
     USING unnest($1::text[], $2::uuid[]) AS old (namespace_id, run_id)
     WHERE interventions.namespace_id = old.namespace_id
       AND interventions.run_id = old.run_id
 RETURNING interventions.namespace_id, interventions.intervention_id
), unasked AS (
    DELETE FROM kagzi.intervention_assignees
     USING gone
     WHERE intervention_assignees.namespace_id = gone.namespace_id
       AND intervention_assignees.intervention_id = gone.intervention_id
)
DELETE FROM kagzi.notices
 USING gone
 WHERE notices.namespace_id = gone.namespace_id
   AND notices.intervention_id = gone.intervention_id";
}

impl InterventionRows for PostgresBackend {
    async fn load_intervention(&mut self, key: &InterventionKey) -> Result<Option<Intervention>, StoreError> {
        let rows = self.query(LOCK_QUESTION, &[&&*key.namespace, &key.id]).await?;
        rows.first().map(read).transpose()
    }

    async fn due_interventions(
        &mut self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueQuestion>, StoreError> {
        let rows = self.query(DUE_QUESTIONS, &[&now.0, &(limit as i64)]).await?;
        let each = |found: &Row| {
            let key = read_key(found)?;
            let run = RunKey::new(key.namespace.clone(), RunId(row::get(found, 2)?));
            Ok((key, run))
        };
        rows.iter().map(each).collect()
    }

    async fn next_intervention(&mut self) -> Result<Option<Timestamp>, StoreError> {
        let rows = self.query(NEXT_QUESTION, &[]).await?;
        rows.first().map(|found| row::get(found, 0).map(Timestamp)).transpose()
    }

    async fn pending_of(&mut self, namespace: &Name, person: &Name, max: usize) -> Result<usize, StoreError> {
        let state = InterventionState::Pending as i16;
        let bind: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
            [&&**namespace, &&**person, &state, &(max as i64)];
        let rows = self.query(COUNT_ASKED, &bind).await?;
        let count = rows.first().map(|found| row::get::<i64>(found, 0)).transpose()?;
        Ok(usize::try_from(count.unwrap_or(0)).unwrap_or(0))
    }

    async fn queued_of(
        &mut self,
        namespace: &Name,
        person: &Name,
    ) -> Result<Option<InterventionKey>, StoreError> {
        let state = InterventionState::Queued as i16;
        let rows = self.query(OLDEST_ASKED, &[&&**namespace, &&**person, &state]).await?;
        rows.first().map(read_key).transpose()
    }

    async fn all_nouns(
        &mut self,
        namespace: &Name,
        kind: &str,
        limit: usize,
    ) -> Result<Vec<NounRow>, StoreError> {
        let rows = self.query(nouns::NOUNS_BEHIND, &[&&**namespace, &kind, &"", &(limit as i64)]).await?;
        rows.iter().map(nouns::read).collect()
    }

    async fn take_notices(
        &mut self,
        now: Timestamp,
        TakeNotices { channel, until, limit }: TakeNotices,
    ) -> Result<Vec<Notice>, StoreError> {
        let (limit, channel) = (limit as i64, channel as i16);
        let rows = self.query(notices::TAKE_NOTICES, &[&now.0, &until.0, &limit, &channel]).await?;
        rows.iter().map(notices::read).collect()
    }
}

/// Deletes the questions of runs that are retired, and what was told of them.
pub async fn forget(backend: &mut PostgresBackend, keys: &[RunKey]) -> Result<(), StoreError> {
    let (namespaces, ids) = row::key_columns(keys);
    backend.query(FORGET_QUESTIONS, &[&namespaces, &ids]).await.map(drop)
}

/// One person who is asked.
struct Asked {
    key: InterventionKey,
    name: Name,
    state: i16,
    due_at: i64,
}

/// The statements for changed questions, in order.
pub fn statements(session: &Session, changes: Changes<Intervention>) -> Vec<Sending<'_>> {
    debug_assert!(changes.deleted.is_empty() && changes.implicit.is_empty(), "a question goes with its run");
    let mut people: Vec<Asked> = Vec::new();
    for row in changes.rows() {
        let (state, due_at) = (row.state as i16, row.due_at().0);
        people.extend(asked(row).into_iter().map(|name| Asked { key: row.key.clone(), name, state, due_at }));
    }
    let Changes { inserted, updated, .. } = changes;
    let mut sending: Vec<Sending<'_>> = Vec::new();
    if !inserted.is_empty() {
        sending.push(Box::pin(async move {
            let mut columns = columns(&inserted);
            columns.push(column(&inserted, |row| row.run.0));
            columns.push(column(&inserted, |row| row.ask.kind as i16));
            send(session, INSERT_QUESTIONS, columns).await
        }));
    }
    if !updated.is_empty() {
        let keys: Vec<InterventionKey> = updated.iter().map(|(_, row)| row.key.clone()).collect();
        sending.push(Box::pin(async move {
            let (from, rows): (Vec<u64>, Vec<Intervention>) = updated.into_iter().unzip();
            let mut columns = columns(&rows);
            columns.push(column(&from, |version| version.cast_signed()));
            send(session, UPDATE_QUESTIONS, columns).await
        }));
        sending.push(Box::pin(async move {
            let columns = vec![column(&keys, |key| &*key.namespace), column(&keys, |key| key.id)];
            send(session, DELETE_ASKED, columns).await
        }));
    }
    if !people.is_empty() {
        sending.push(Box::pin(async move {
            let columns = vec![
                column(&people, |asked| &*asked.key.namespace),
                column(&people, |asked| asked.key.id),
                column(&people, |asked| &*asked.name),
                column(&people, |asked| asked.state),
                column(&people, |asked| asked.due_at),
            ];
            send(session, INSERT_ASKED, columns).await
        }));
    }
    sending
}

fn columns(rows: &[Intervention]) -> Columns<'_> {
    let columns: [_; intervention!(changed_width)] = [
        column(rows, |row| &*row.key.namespace),
        column(rows, |row| row.key.id),
        column(rows, |row| row.version.cast_signed()),
        column(rows, to_json),
        column(rows, |row| row.due_at().0),
        column(rows, |row| row.state as i16),
        column(rows, |row| row.next_at().map(|at| at.0)),
        column(rows, |row| row.severity.map(|severity| severity as i16)),
    ];
    columns.into()
}

#[async_trait]
impl InterventionReads for PostgresReads {
    async fn intervention(&self, key: &InterventionKey) -> Result<Option<Intervention>, StoreError> {
        let rows = self.query(LOAD_QUESTION, &[&&*key.namespace, &key.id]).await?;
        rows.first().map(read).transpose()
    }

    async fn interventions(
        &self,
        namespace: &Name,
        filter: &InterventionFilter,
        page: &PageRequest,
    ) -> Result<Page<Intervention>, StoreError> {
        let listing = listing::interventions(POSTGRES, intervention!(qualified), namespace, filter);
        let list = |session: Arc<Session>| {
            let listing = &listing;
            async move { list_page(&session, listing, page, PLACE, read).await }
        };
        self.pool().read(list).await
    }

    async fn notices(&self, key: &InterventionKey) -> Result<Vec<Notice>, StoreError> {
        let rows = self.query(notices::NOTICES_OF, &[&&*key.namespace, &key.id]).await?;
        rows.iter().map(notices::read).collect()
    }

    async fn notice_due_since(&self) -> Result<Option<Timestamp>, StoreError> {
        let rows = self.query(notices::NOTICE_DUE_SINCE, &[]).await?;
        rows.first().map(|found| row::get::<i64>(found, 0).map(Timestamp)).transpose()
    }
}

/// The columns that are a question's place in a list.
const PLACE: (usize, usize) = (4, 1);

fn read_key(found: &Row) -> Result<InterventionKey, StoreError> {
    Ok(InterventionKey { namespace: row::name(found, 0)?, id: row::get(found, 1)? })
}

fn read(found: &Row) -> Result<Intervention, StoreError> {
    row::json(found, 3)
}
