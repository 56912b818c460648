//! Schedules: their rows, for the writer and for readers.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use kagzi_model::{
    Name, Payload, Timestamp,
    schedule::{Schedule, ScheduleKey},
};
use kagzi_store::{
    Changes, DueSchedule, Page, PageRequest, ScheduleFilter, ScheduleReads, ScheduleRows, StoreError,
    listing::{self, POSTGRES},
    schedule,
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    backend::PostgresBackend,
    reads::{PostgresReads, list_page},
    row,
    session::Session,
    write::{Columns, Sending, column, send, text, to_json},
};

kagzi_store::statements! {
/// Every fixed statement about schedules; a test prepares each on a real database.
STATEMENTS:

const LOAD_SCHEDULE: &str = concat!(
    "SELECT ",
    schedule!(columns),
    "
   FROM kagzi.schedules
  WHERE namespace_id = $1
    AND schedule_id = $2"
);

const LOAD_SCHEDULES: &str = concat!(
    "SELECT ",
    schedule!(columns),
    "
   FROM kagzi.schedules
  WHERE (namespace_id, schedule_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))"
);

// Passed over when another server has it: that one looks at the schedule's runs after us, so it sees what we
// write.
const CLAIM_SCHEDULE: &str = concat!(
    "SELECT ",
    schedule!(columns),
    "
   FROM kagzi.schedules
  WHERE namespace_id = $1
    AND schedule_id = $2
    FOR UPDATE SKIP LOCKED"
);

// All servers wake for the same second: the first one has the schedule, the others pass it over.
const DUE_SCHEDULES: &str = concat!(
    "SELECT ",
    schedule!(columns),
    "
   FROM kagzi.schedules
  WHERE next_at <= $1
    AND uid <> ALL($3::uuid[])
  ORDER BY next_at, uid
  LIMIT $2
    FOR UPDATE SKIP LOCKED"
);

const NEXT_SCHEDULE: &str = "SELECT next_at
   FROM kagzi.schedules
  WHERE next_at IS NOT NULL
    AND uid <> ALL($1::uuid[])
  ORDER BY next_at
  LIMIT 1";

const INSERT_SCHEDULES: &str = concat!(
    "INSERT INTO kagzi.schedules (",
    schedule!(inserted),
    ")
 SELECT *
   FROM unnest(",
    schedule!(arrays),
    ")"
);

// As with runs: another version there ends the transaction here and now.
const UPDATE_SCHEDULES: &str = concat!(
    "WITH done AS (
    UPDATE kagzi.schedules
       SET ",
    schedule!(set_new),
    "
      FROM unnest(",
    schedule!(changed_arrays),
    ", $12::bigint[])
           AS new (",
    schedule!(changed),
    ", from_version)
     WHERE schedules.namespace_id = new.namespace_id
       AND schedules.schedule_id = new.schedule_id
       AND schedules.version = new.from_version
 RETURNING 1
)
SELECT 1 / (count(*) = cardinality($2))::integer
  FROM done"
);

const DELETE_SCHEDULES: &str = "WITH done AS (
    DELETE FROM kagzi.schedules
     USING unnest($1::text[], $2::text[], $3::bigint[]) AS old (namespace_id, schedule_id, version)
     WHERE schedules.namespace_id = old.namespace_id
       AND schedules.schedule_id = old.schedule_id
       AND schedules.version = old.version
 RETURNING 1
)
SELECT 1 / (count(*) = cardinality($2))::integer
  FROM done";
}

impl ScheduleRows for PostgresBackend {
    async fn load_schedule(&mut self, key: &ScheduleKey) -> Result<Option<Schedule>, StoreError> {
        let rows = self.query(LOAD_SCHEDULE, &[&&*key.namespace, &&*key.id]).await?;
        rows.first().map(read).transpose()
    }

    async fn load_schedules(&mut self, keys: &[ScheduleKey]) -> Result<Vec<Schedule>, StoreError> {
        let namespaces: Vec<&str> = keys.iter().map(|key| &*key.namespace).collect();
        let ids: Vec<&str> = keys.iter().map(|key| &*key.id).collect();
        let rows = self.query(LOAD_SCHEDULES, &[&namespaces, &ids]).await?;
        rows.iter().map(read).collect()
    }

    async fn claim_schedule(&mut self, key: &ScheduleKey) -> Result<Option<Schedule>, StoreError> {
        let rows = self.query(CLAIM_SCHEDULE, &[&&*key.namespace, &&*key.id]).await?;
        rows.first().map(read).transpose()
    }

    async fn claim_due_schedules(
        &mut self,
        now: Timestamp,
        limit: usize,
        aside: &[Uuid],
    ) -> Result<Vec<DueSchedule>, StoreError> {
        let rows = self.query(DUE_SCHEDULES, &[&now.0, &(limit as i64), &aside]).await?;
        let each = |found: &Row| {
            let key = ScheduleKey { namespace: row::name(found, 0)?, id: row::name(found, 1)? };
            DueSchedule::of(key, row::get(found, 8)?, read(found))
        };
        rows.iter().map(each).collect()
    }

    async fn next_schedule(&mut self, aside: &[Uuid]) -> Result<Option<Timestamp>, StoreError> {
        let rows = self.query(NEXT_SCHEDULE, &[&aside]).await?;
        rows.first().map(|found| row::get(found, 0).map(Timestamp)).transpose()
    }
}

/// The statements for changed schedules, in order.
pub fn statements(session: &Session, changes: Changes<Schedule>) -> Vec<Sending<'_>> {
    let Changes { deleted, implicit, inserted, updated } = changes;
    debug_assert!(implicit.is_empty(), "a schedule is made by a person");
    let mut sending: Vec<Sending<'_>> = Vec::new();
    if !deleted.is_empty() {
        sending.push(Box::pin(async move {
            let columns = vec![
                column(&deleted, |(key, _)| &*key.namespace),
                column(&deleted, |(key, _)| &*key.id),
                column(&deleted, |(_, version)| version.cast_signed()),
            ];
            send(session, DELETE_SCHEDULES, columns).await
        }));
    }
    if !inserted.is_empty() {
        sending.push(Box::pin(async move {
            let mut columns = columns(&inserted);
            columns.push(column(&inserted, |row| row.uid));
            columns.push(column(&inserted, |row| row.created_at.0));
            send(session, INSERT_SCHEDULES, columns).await
        }));
    }
    if !updated.is_empty() {
        sending.push(Box::pin(async move {
            let (from, rows): (Vec<u64>, Vec<Schedule>) = updated.into_iter().unzip();
            let mut columns = columns(&rows);
            columns.push(column(&from, |version| version.cast_signed()));
            send(session, UPDATE_SCHEDULES, columns).await
        }));
    }
    sending
}

fn columns(rows: &[Schedule]) -> Columns<'_> {
    let columns: [_; schedule!(changed_width)] = [
        column(rows, |row| &*row.namespace),
        column(rows, |row| &*row.id),
        column(rows, |row| row.version.cast_signed()),
        column(rows, |row| to_json(&row.plan)),
        column(rows, |row| to_json(&row.state)),
        column(rows, |row| row.updated_at.0),
        column(rows, |row| &*row.input.data),
        column(rows, |row| text(&row.input.content_type)),
        column(rows, |row| &*row.plan.workflow_type),
        column(rows, |row| row.state.paused.is_some()),
        column(rows, |row| row.state.next_at.map(|at| at.0)),
    ];
    columns.into()
}

#[async_trait]
impl ScheduleReads for PostgresReads {
    async fn schedule_by_id(&self, namespace: &Name, id: &Name) -> Result<Option<Schedule>, StoreError> {
        let rows = self.query(LOAD_SCHEDULE, &[&&**namespace, &&**id]).await?;
        rows.first().map(read).transpose()
    }

    async fn schedules(
        &self,
        namespace: &Name,
        filter: &ScheduleFilter,
        page: &PageRequest,
    ) -> Result<Page<Schedule>, StoreError> {
        let listing = listing::schedules(POSTGRES, schedule!(columns), namespace, filter);
        let list = |session: Arc<Session>| {
            let listing = &listing;
            async move { list_page(&session, listing, page, PLACE, read).await }
        };
        self.pool().read(list).await
    }
}

/// The columns that are a schedule's place in a list.
const PLACE: (usize, usize) = (9, 8);

fn read(found: &Row) -> Result<Schedule, StoreError> {
    let data: &[u8] = row::get(found, 6)?;
    Ok(Schedule {
        namespace: row::name(found, 0)?,
        id: row::name(found, 1)?,
        version: row::get::<i64>(found, 2)?.cast_unsigned(),
        plan: row::json(found, 3)?,
        state: row::json(found, 4)?,
        updated_at: Timestamp(row::get(found, 5)?),
        input: Payload { data: Bytes::copy_from_slice(data), content_type: row::name(found, 7)? },
        uid: row::get(found, 8)?,
        created_at: Timestamp(row::get(found, 9)?),
    })
}
