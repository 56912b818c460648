//! Schedules: their rows, for the writer and for readers.

use async_trait::async_trait;
use kagzi_model::{
    Name, Payload, Timestamp,
    schedule::{Schedule, ScheduleKey},
};
use kagzi_store::{
    Changes, DueSchedule, Page, PageRequest, ScheduleFilter, ScheduleReads, ScheduleRows, StoreError,
    listing::{self, SQLITE},
    schedule,
};
use uuid::Uuid;

use crate::{
    backend::SqliteBackend,
    db::Db,
    reads::{SqliteReads, list_page},
    value::{Bind, Row, Value, bind, json},
};

kagzi_store::statements! {
/// Every fixed statement about schedules; a test prepares each on a real database.
STATEMENTS:

const LOAD_SCHEDULE: &str = concat!(
    "SELECT ",
    schedule!(columns),
    "
   FROM schedules
  WHERE namespace_id = ?1
    AND schedule_id = ?2"
);

const DUE_SCHEDULES: &str = concat!(
    "SELECT ",
    schedule!(columns),
    "
   FROM schedules INDEXED BY schedules_due
  WHERE next_at <= ?1
    AND next_at IS NOT NULL
  ORDER BY next_at, uid
  LIMIT ?2"
);

const NEXT_SCHEDULE: &str = "SELECT next_at, uid
   FROM schedules INDEXED BY schedules_due
  WHERE next_at IS NOT NULL
  ORDER BY next_at, uid
  LIMIT ?1";

const INSERT_SCHEDULE: &str = concat!(
    "INSERT INTO schedules (",
    schedule!(inserted),
    ")
 VALUES (",
    schedule!(values),
    ")"
);

const UPDATE_SCHEDULE: &str = concat!(
    "UPDATE schedules
    SET ",
    schedule!(set),
    "
  WHERE namespace_id = ?1
    AND schedule_id = ?2
    AND version = ?12"
);

const DELETE_SCHEDULE: &str = "DELETE FROM schedules
  WHERE namespace_id = ?1
    AND schedule_id = ?2
    AND version = ?3";
}

impl ScheduleRows for SqliteBackend {
    async fn load_schedule(&mut self, key: &ScheduleKey) -> Result<Option<Schedule>, StoreError> {
        self.db().first(LOAD_SCHEDULE, bind![key.namespace, key.id], read)
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
        let each = |row: &Row<'_>| {
            let (key, uid) = (ScheduleKey { namespace: row.get(0)?, id: row.get(1)? }, row.get(8)?);
            Ok((uid, DueSchedule::of(key, uid, read(row))?))
        };
        let due: Vec<(Uuid, DueSchedule)> =
            self.db().all(DUE_SCHEDULES, bind![now, limit + aside.len()], each)?;
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
        one(bound(row, [row.uid.value(), row.created_at.value()], |all| db.execute(INSERT_SCHEDULE, all))?)?;
    }
    for (from, row) in updated {
        one(bound(row, [from.value()], |all| db.execute(UPDATE_SCHEDULE, all))?)?;
    }
    Ok(())
}

/// The values of a change, and those behind them.
fn bound<'r, T, const N: usize>(
    row: &'r Schedule,
    behind: [Value<'r>; N],
    write: impl FnOnce(&[Value<'_>]) -> T,
) -> T {
    let (plan, state, paused) = (json(&row.plan), json(&row.state), row.state.paused.is_some());
    let changed: &[Value<'_>; schedule!(changed_width)] = bind![
        row.namespace,
        row.id,
        row.version,
        plan,
        state,
        row.updated_at,
        *row.input.data,
        row.input.content_type,
        row.plan.workflow_type,
        paused,
        row.state.next_at,
    ];
    let all: Vec<Value<'_>> = changed.iter().chain(&behind).copied().collect();
    write(&all)
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
        self.pool().read(move |db| db.first(LOAD_SCHEDULE, bind![namespace, id], read)).await
    }

    async fn schedules(
        &self,
        namespace: &Name,
        filter: &ScheduleFilter,
        page: &PageRequest,
    ) -> Result<Page<Schedule>, StoreError> {
        let listing = listing::schedules(SQLITE, schedule!(columns), namespace, filter);
        let page = *page;
        self.pool().read(move |db| db.transaction(|| list_page(db, &listing, &page, PLACE, read))).await
    }
}

/// The columns that are a schedule's place in a list.
const PLACE: (usize, usize) = (9, 8);

fn read(row: &Row<'_>) -> Result<Schedule, StoreError> {
    let data: Vec<u8> = row.get(6)?;
    Ok(Schedule {
        namespace: row.get(0)?,
        id: row.get(1)?,
        version: row.get(2)?,
        plan: row.json(3)?,
        state: row.json(4)?,
        updated_at: row.get(5)?,
        input: Payload { data: data.into(), content_type: row.get(7)? },
        uid: row.get(8)?,
        created_at: row.get(9)?,
    })
}
