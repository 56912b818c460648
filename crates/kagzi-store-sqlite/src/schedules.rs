//! Schedules: their rows, for the writer and for readers.

use async_trait::async_trait;
use kagzi_model::{
    Name, Payload, Timestamp,
    schedule::{Schedule, ScheduleKey},
};
use kagzi_store::{
    Changes, DueSchedule, Page, PageRequest, ScheduleFilter, ScheduleReads, ScheduleRows, StoreError,
    listing::{self, SQLITE},
};
use uuid::Uuid;

use crate::{
    backend::SqliteBackend,
    db::Db,
    reads::{SqliteReads, list_page},
    value::{Row, bind, json},
};

/// The columns of a schedule, in the order that [`schedule`] reads them.
const COLUMNS: &str =
    "namespace_id, schedule_id, uid, version, plan, state, created_at, updated_at, input, content_type";

const LOAD_SCHEDULE: &str =
    "SELECT namespace_id, schedule_id, uid, version, plan, state, created_at, updated_at, input, content_type
   FROM schedules
  WHERE namespace_id = ?1
    AND schedule_id = ?2";

const DUE_SCHEDULES: &str =
    "SELECT namespace_id, schedule_id, uid, version, plan, state, created_at, updated_at, input, content_type
   FROM schedules INDEXED BY schedules_due
  WHERE next_at <= ?1
    AND next_at IS NOT NULL
  ORDER BY next_at, uid
  LIMIT ?2";

const NEXT_SCHEDULE: &str = "SELECT next_at, uid
   FROM schedules INDEXED BY schedules_due
  WHERE next_at IS NOT NULL
  ORDER BY next_at, uid
  LIMIT ?1";

const INSERT_SCHEDULE: &str =
    "INSERT INTO schedules (namespace_id, schedule_id, uid, version, workflow_type, plan, state, paused, \
     next_at,
                       created_at, updated_at, input, content_type)
 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";

const UPDATE_SCHEDULE: &str = "UPDATE schedules
    SET version = ?3, workflow_type = ?4, plan = ?5, state = ?6, paused = ?7, next_at = ?8, updated_at = ?9,
        input = ?10, content_type = ?11
  WHERE namespace_id = ?1
    AND schedule_id = ?2
    AND version = ?12";

const DELETE_SCHEDULE: &str = "DELETE FROM schedules
  WHERE namespace_id = ?1
    AND schedule_id = ?2
    AND version = ?3";

/// Every fixed statement about schedules; a test prepares each on a real database.
pub const STATEMENTS: &[(&str, &str)] = &[
    ("LOAD_SCHEDULE", LOAD_SCHEDULE),
    ("DUE_SCHEDULES", DUE_SCHEDULES),
    ("NEXT_SCHEDULE", NEXT_SCHEDULE),
    ("INSERT_SCHEDULE", INSERT_SCHEDULE),
    ("UPDATE_SCHEDULE", UPDATE_SCHEDULE),
    ("DELETE_SCHEDULE", DELETE_SCHEDULE),
];

impl ScheduleRows for SqliteBackend {
    async fn load_schedule(&mut self, key: &ScheduleKey) -> Result<Option<Schedule>, StoreError> {
        self.db().first(LOAD_SCHEDULE, bind![key.namespace, key.id], schedule)
    }

    async fn load_schedules(&mut self, keys: &[ScheduleKey]) -> Result<Vec<Schedule>, StoreError> {
        let mut loaded = Vec::with_capacity(keys.len());
        for key in keys {
            loaded.extend(self.load_schedule(key).await?);
        }
        Ok(loaded)
    }

    async fn claim_schedule(&mut self, key: &ScheduleKey) -> Result<Option<Schedule>, StoreError> {
        // Nobody else writes to the file.
        self.load_schedule(key).await
    }

    async fn claim_due_schedules(
        &mut self,
        now: Timestamp,
        limit: usize,
        aside: &[Uuid],
    ) -> Result<Vec<DueSchedule>, StoreError> {
        let read = |row: &Row<'_>| {
            let (key, uid) = (ScheduleKey { namespace: row.get(0)?, id: row.get(1)? }, row.get(2)?);
            Ok((uid, DueSchedule::of(key, uid, schedule(row))?))
        };
        let due: Vec<(Uuid, DueSchedule)> =
            self.db().all(DUE_SCHEDULES, bind![now, limit + aside.len()], read)?;
        let due = due.into_iter().filter(|(uid, _)| !aside.contains(uid));
        Ok(due.map(|(_, schedule)| schedule).take(limit).collect())
    }

    async fn next_schedule(&mut self, aside: &[Uuid]) -> Result<Option<Timestamp>, StoreError> {
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let times: Vec<(Timestamp, Uuid)> = self.db().all(NEXT_SCHEDULE, bind![aside.len() + 1], read)?;
        Ok(times.into_iter().find(|(_, uid)| !aside.contains(uid)).map(|(at, _)| at))
    }
}

/// Writes what changed. We are alone on the file, so a row that is not as memory says means: reload.
pub fn write(db: &Db, changes: &Changes<Schedule>) -> Result<(), StoreError> {
    let Changes { deleted, implicit, inserted, updated } = changes;
    debug_assert!(implicit.is_empty(), "a schedule is made by a person");
    for (key, from) in deleted {
        one(db.execute(DELETE_SCHEDULE, bind![key.namespace, key.id, *from])?)?;
    }
    for row in inserted {
        one(db.execute(
            INSERT_SCHEDULE,
            bind![
                row.namespace,
                row.id,
                row.uid,
                row.version,
                row.plan.workflow_type,
                json(&row.plan),
                json(&row.state),
                row.state.paused.is_some(),
                row.state.next_at,
                row.created_at,
                row.updated_at,
                *row.input.data,
                row.input.content_type,
            ],
        )?)?;
    }
    for (from, row) in updated {
        one(db.execute(
            UPDATE_SCHEDULE,
            bind![
                row.namespace,
                row.id,
                row.version,
                row.plan.workflow_type,
                json(&row.plan),
                json(&row.state),
                row.state.paused.is_some(),
                row.state.next_at,
                row.updated_at,
                *row.input.data,
                row.input.content_type,
                *from,
            ],
        )?)?;
    }
    Ok(())
}

fn one(changed: usize) -> Result<(), StoreError> {
    match changed {
        1 => Ok(()),
        _ => Err(StoreError::Conflict("a schedule has another version than memory says".into())),
    }
}

#[async_trait]
impl ScheduleReads for SqliteReads {
    async fn schedule_by_id(&self, namespace: &Name, id: &Name) -> Result<Option<Schedule>, StoreError> {
        let (namespace, id) = (namespace.clone(), id.clone());
        self.pool().read(move |db| db.first(LOAD_SCHEDULE, bind![namespace, id], schedule)).await
    }

    async fn schedules(
        &self,
        namespace: &Name,
        filter: &ScheduleFilter,
        page: &PageRequest,
    ) -> Result<Page<Schedule>, StoreError> {
        let listing = listing::schedules(SQLITE, COLUMNS, namespace, filter);
        let page = *page;
        self.pool().read(move |db| db.transaction(|| list_page(db, &listing, &page, PLACE, schedule))).await
    }
}

/// The columns that are a schedule's place in a list.
const PLACE: (usize, usize) = (6, 2);

fn schedule(row: &Row<'_>) -> Result<Schedule, StoreError> {
    let data: Vec<u8> = row.get(8)?;
    Ok(Schedule {
        namespace: row.get(0)?,
        id: row.get(1)?,
        uid: row.get(2)?,
        version: row.get(3)?,
        plan: row.json(4)?,
        state: row.json(5)?,
        created_at: row.get(6)?,
        updated_at: row.get(7)?,
        input: Payload { data: data.into(), content_type: row.get(9)? },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn column_lists_match_the_reader() {
        let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");

        assert!(squeeze(LOAD_SCHEDULE).contains(COLUMNS));
        assert!(squeeze(DUE_SCHEDULES).contains(COLUMNS));
    }
}
