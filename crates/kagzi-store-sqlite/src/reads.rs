//! Reading for people and for replay.

use async_trait::async_trait;
use kagzi_model::{Event, EventKind, Name, Run, RunId, WorkerId};
use kagzi_store::{
    Cursor, Direction, Page, PageRequest, Reads, RunFilter, RunView, StoreError, WorkerFilter, WorkerView,
};
use rusqlite::{Connection, OptionalExtension, ToSql, params};

use crate::{
    pool::ReadPool,
    row::{self, RUN_COLUMNS, WORKER_COLUMNS},
};

const RUN: &str =
    "SELECT namespace_id, run_id, business_id, workflow_type, task_queue, state, version, epoch, attempts,
        dispatch_count, crashes, created_at, started_at, finished_at, deadline_at, options
   FROM runs
  WHERE run_id = ?1
    AND namespace_id = ?2";

const INPUT: &str = "SELECT payload, content_type
   FROM events
  WHERE run_id = ?1
    AND seq = 1";

// A completed run ends with its output, so the last event has it.
const OUTPUT: &str = "SELECT payload, content_type
   FROM events
  WHERE run_id = ?1
    AND kind = ?2
  ORDER BY seq DESC
  LIMIT 1";

const RUN_BY_BUSINESS: &str = "SELECT run_id
   FROM runs
  WHERE namespace_id = ?1
    AND business_id = ?2";

// The `+` keeps SQLite from walking the whole namespace by its listing index: the range of ids is what is narrow.
const RUNS_BY_PREFIX: &str = "SELECT run_id
   FROM runs
  WHERE +namespace_id = ?1
    AND run_id BETWEEN ?2 AND ?3
  LIMIT 2";

const EVENTS: &str = "SELECT seq, at, detail, payload, content_type
   FROM events
  WHERE run_id = ?1
    AND seq > ?2
    AND EXISTS (SELECT 1 FROM runs WHERE runs.run_id = ?1 AND runs.namespace_id = ?3)
  ORDER BY seq
  LIMIT ?4";

const WORKER: &str =
    "SELECT namespace_id, worker_id, task_queue, hostname, pid, version, workflow_types, labels,
        max_concurrent, status, completed_total, failed_total, registered_at, heartbeat_at, deregistered_at,
        (SELECT count(*) FROM runs WHERE runs.lease_worker = workers.worker_id)
   FROM workers
  WHERE worker_id = ?1
    AND namespace_id = ?2";

const WORKERS_BY_PREFIX: &str = "SELECT worker_id
   FROM workers
  WHERE +namespace_id = ?1
    AND worker_id BETWEEN ?2 AND ?3
  LIMIT 2";

/// Every fixed statement of the read path; a test prepares each on a real database.
pub const STATEMENTS: &[(&str, &str)] = &[
    ("RUN", RUN),
    ("INPUT", INPUT),
    ("OUTPUT", OUTPUT),
    ("RUN_BY_BUSINESS", RUN_BY_BUSINESS),
    ("RUNS_BY_PREFIX", RUNS_BY_PREFIX),
    ("EVENTS", EVENTS),
    ("WORKER", WORKER),
    ("WORKERS_BY_PREFIX", WORKERS_BY_PREFIX),
];

/// The reading side of the store.
pub struct SqliteReads {
    pool: ReadPool,
}

impl SqliteReads {
    pub(crate) fn new(pool: ReadPool) -> Self {
        SqliteReads { pool }
    }
}

#[async_trait]
impl Reads for SqliteReads {
    async fn run(&self, namespace: &Name, id: RunId) -> Result<Option<RunView>, StoreError> {
        let namespace = namespace.clone();
        self.pool.read(move |db| read_run(db, &namespace, id)).await
    }

    async fn run_by_business(
        &self,
        namespace: &Name,
        business_id: &Name,
    ) -> Result<Option<RunId>, StoreError> {
        let (namespace, business_id) = (namespace.clone(), business_id.clone());
        self.pool
            .read(move |db| {
                let mut statement = db.prepare_cached(RUN_BY_BUSINESS)?;
                statement
                    .query_row([&*namespace, &*business_id], |found| Ok(RunId(row::uuid(found, 0)?)))
                    .optional()
            })
            .await
    }

    async fn runs_by_prefix(&self, namespace: &Name, digits: &str) -> Result<Vec<RunId>, StoreError> {
        let found = self.by_prefix(RUNS_BY_PREFIX, namespace, digits).await?;
        Ok(found.into_iter().map(RunId).collect())
    }

    async fn runs(
        &self,
        namespace: &Name,
        filter: &RunFilter,
        page: &PageRequest,
    ) -> Result<Page<Run>, StoreError> {
        let (namespace, filter, page) = (namespace.clone(), filter.clone(), *page);
        self.pool.read(move |db| list_runs(db, &namespace, &filter, &page)).await
    }

    async fn events(
        &self,
        namespace: &Name,
        run: RunId,
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        let namespace = namespace.clone();
        self.pool
            .read(move |db| {
                let mut statement = db.prepare_cached(EVENTS)?;
                let bind = params![run.0.as_bytes(), after_seq.cast_signed(), &*namespace, limit as i64];
                statement.query_map(bind, row::event)?.collect()
            })
            .await
    }

    async fn worker_by_id(&self, namespace: &Name, id: WorkerId) -> Result<Option<WorkerView>, StoreError> {
        let namespace = namespace.clone();
        self.pool
            .read(move |db| {
                let mut statement = db.prepare_cached(WORKER)?;
                statement.query_row(params![id.0.as_bytes(), &*namespace], worker_view).optional()
            })
            .await
    }

    async fn workers_by_prefix(&self, namespace: &Name, digits: &str) -> Result<Vec<WorkerId>, StoreError> {
        let found = self.by_prefix(WORKERS_BY_PREFIX, namespace, digits).await?;
        Ok(found.into_iter().map(WorkerId).collect())
    }

    async fn workers(
        &self,
        namespace: &Name,
        filter: &WorkerFilter,
        page: &PageRequest,
    ) -> Result<(Page<WorkerView>, u64), StoreError> {
        let (namespace, filter, page) = (namespace.clone(), filter.clone(), *page);
        self.pool.read(move |db| list_workers(db, &namespace, &filter, &page)).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.pool.read(|db| db.query_row("SELECT 1", [], |_| Ok(()))).await
    }
}

impl SqliteReads {
    async fn by_prefix(
        &self,
        sql: &'static str,
        namespace: &Name,
        digits: &str,
    ) -> Result<Vec<uuid::Uuid>, StoreError> {
        let Some((low, high)) = prefix_range(digits) else { return Ok(Vec::new()) };
        let namespace = namespace.clone();
        self.pool
            .read(move |db| {
                let mut statement = db.prepare_cached(sql)?;
                let bind = params![&*namespace, low.as_bytes(), high.as_bytes()];
                statement.query_map(bind, |found| row::uuid(found, 0))?.collect()
            })
            .await
    }
}

/// The smallest and largest id that begin with these hexadecimal digits.
fn prefix_range(digits: &str) -> Option<(uuid::Uuid, uuid::Uuid)> {
    let low = uuid::Uuid::try_parse(&format!("{digits:0<32}")).ok()?;
    let high = uuid::Uuid::try_parse(&format!("{digits:f<32}")).ok()?;
    Some((low, high))
}

fn read_run(db: &mut Connection, namespace: &Name, id: RunId) -> rusqlite::Result<Option<RunView>> {
    // One snapshot, so that row and payloads belong together.
    let snapshot = db.transaction()?;
    let run = snapshot
        .prepare_cached(RUN)?
        .query_row(params![id.0.as_bytes(), &**namespace], row::run)
        .optional()?;
    let Some(run) = run else { return Ok(None) };
    let payload = |found: &rusqlite::Row<'_>| row::payload(found, 0);
    let input = snapshot.prepare_cached(INPUT)?.query_row([id.0.as_bytes()], payload).optional()?;
    let output = if run.state.finished() {
        let bind = params![id.0.as_bytes(), EventKind::RUN_COMPLETED];
        snapshot.prepare_cached(OUTPUT)?.query_row(bind, payload).optional()?
    } else {
        None
    };
    Ok(Some(RunView { run, input: input.flatten(), output: output.flatten() }))
}

fn worker_view(found: &rusqlite::Row<'_>) -> rusqlite::Result<WorkerView> {
    Ok(WorkerView { worker: row::worker(found)?, active: found.get(15)? })
}

/// The conditions of a listing, gathered with the values they bind.
struct Conditions {
    sql: Vec<String>,
    values: Vec<Box<dyn ToSql>>,
}

impl Conditions {
    fn in_namespace(namespace: &Name) -> Self {
        let mut conditions = Conditions { sql: Vec::new(), values: Vec::new() };
        conditions.add("namespace_id =", namespace.to_string());
        conditions
    }

    fn add(&mut self, condition: &str, value: impl ToSql + 'static) {
        self.values.push(Box::new(value));
        self.sql.push(format!("{condition} ?{}", self.values.len()));
    }

    /// Rows on one side of the cursor, in the order (time, id).
    fn beyond(&mut self, (time, id): (&str, &str), operator: &str, from: Cursor) {
        self.values.push(Box::new(from.at.0));
        self.values.push(Box::new(from.id.as_bytes().to_vec()));
        let n = self.values.len();
        self.sql.push(format!("({time}, {id}) {operator} (?{}, ?{n})", n - 1));
    }

    fn text(&self) -> String {
        self.sql.join(" AND ")
    }

    fn bind(&self) -> impl rusqlite::Params + '_ {
        rusqlite::params_from_iter(self.values.iter())
    }
}

struct Listing<'a> {
    columns: &'a str,
    table: &'a str,
    order: (&'a str, &'a str),
}

fn list_page<T>(
    db: &Connection,
    listing: &Listing<'_>,
    conditions: impl Fn() -> Conditions,
    page: &PageRequest,
    read: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Page<T>> {
    let Listing { columns, table, order } = listing;
    let (time, id) = order;
    let (operator, other, sort) = match page.direction {
        Direction::Next => ("<", ">=", "DESC"),
        Direction::Prev => (">", "<=", "ASC"),
    };
    let mut wanted = conditions();
    if let Some(from) = page.from {
        wanted.beyond(*order, operator, from);
    }
    let sql = format!(
        "SELECT {columns} FROM {table} WHERE {} ORDER BY {time} {sort}, {id} {sort} LIMIT {}",
        wanted.text(),
        page.limit + 1
    );
    let rows: Vec<T> =
        db.prepare_cached(&sql)?.query_map(wanted.bind(), read)?.collect::<rusqlite::Result<_>>()?;
    let other_side = match page.from {
        None => false,
        Some(from) => {
            let mut behind = conditions();
            behind.beyond(*order, other, from);
            let sql = format!("SELECT EXISTS (SELECT 1 FROM {table} WHERE {})", behind.text());
            db.prepare_cached(&sql)?.query_row(behind.bind(), |found| found.get(0))?
        }
    };
    Ok(Page::from_probe(rows, page, other_side))
}

fn list_runs(
    db: &mut Connection,
    namespace: &Name,
    filter: &RunFilter,
    page: &PageRequest,
) -> rusqlite::Result<Page<Run>> {
    let snapshot = db.transaction()?;
    let conditions = || {
        let mut conditions = Conditions::in_namespace(namespace);
        if let Some(status) = filter.status {
            conditions.add("status =", status as u8);
        }
        if let Some(name) = &filter.workflow_type {
            conditions.add("workflow_type =", name.to_string());
        }
        if let Some(name) = &filter.task_queue {
            conditions.add("task_queue =", name.to_string());
        }
        if let Some(code) = &filter.error_code {
            conditions.add("json_extract(state, '$.failure.code') =", code.to_string());
        }
        if let Some(reason) = &filter.reason {
            conditions.add("json_extract(state, '$.is') =", reason.to_string());
        }
        conditions
    };
    let listing = Listing { columns: RUN_COLUMNS, table: "runs", order: ("created_at", "run_id") };
    list_page(&snapshot, &listing, conditions, page, row::run)
}

fn list_workers(
    db: &mut Connection,
    namespace: &Name,
    filter: &WorkerFilter,
    page: &PageRequest,
) -> rusqlite::Result<(Page<WorkerView>, u64)> {
    let snapshot = db.transaction()?;
    let conditions = || {
        let mut conditions = Conditions::in_namespace(namespace);
        if let Some(status) = filter.status {
            conditions.add("status =", status as u8);
        }
        if let Some(name) = &filter.task_queue {
            conditions.add("task_queue =", name.to_string());
        }
        conditions
    };
    let columns =
        format!("{WORKER_COLUMNS}, (SELECT count(*) FROM runs WHERE runs.lease_worker = workers.worker_id)");
    let listing = Listing { columns: &columns, table: "workers", order: ("registered_at", "worker_id") };
    let rows = list_page(&snapshot, &listing, conditions, page, worker_view)?;
    let all = conditions();
    let sql = format!("SELECT count(*) FROM workers WHERE {}", all.text());
    let total: i64 = snapshot.prepare_cached(&sql)?.query_row(all.bind(), |found| found.get(0))?;
    Ok((rows, total.cast_unsigned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_covers_the_ids_that_begin_with_it() {
        let (low, high) = prefix_range("01ab").unwrap();

        assert_eq!(low.to_string(), "01ab0000-0000-0000-0000-000000000000");
        assert_eq!(high.to_string(), "01abffff-ffff-ffff-ffff-ffffffffffff");
        assert_eq!(prefix_range("xyz"), None);
    }

    #[test]
    fn column_lists_match_the_readers() {
        let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");

        assert!(squeeze(RUN).contains(&squeeze(RUN_COLUMNS)));
        assert!(squeeze(WORKER).contains(&squeeze(WORKER_COLUMNS)));
    }
}
