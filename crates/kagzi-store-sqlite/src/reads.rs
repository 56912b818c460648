//! Reading for people and for replay.

use async_trait::async_trait;
use kagzi_model::{Event, Name, Payload, Run, RunId, Timestamp, WorkerId};
use kagzi_store::{
    Census, Cursor, DueCount, EventFilter, EventOutline, EventPiece, EventRequest, Listed, Page, PageRequest,
    Reads, RunFilter, RunView, StoreError, Total, WaitCount, WorkerFilter, WorkerView,
    listing::{self, Listing, SQLITE, Statement},
    run, worker,
};

use crate::{
    db::Db,
    events,
    pool::ReadPool,
    runs,
    value::{Row, Value, bind},
    workers,
};

kagzi_store::statements! {
/// Every fixed statement of the read path; a test prepares each on a real database.
STATEMENTS:

const RUN: &str = concat!(
    "SELECT ",
    run!(columns),
    "
   FROM runs
  WHERE run_id = ?1
    AND namespace_id = ?2"
);

const LIVES: &str = "SELECT run_id
   FROM runs
  WHERE run_id = ?1
    AND namespace_id = ?2
    AND finished_at IS NULL";

const RUN_BY_BUSINESS: &str = "SELECT run_id
   FROM runs
  WHERE namespace_id = ?1
    AND business_id = ?2
    AND business_id IS NOT NULL";

// The `+` keeps SQLite from walking the whole namespace by its listing index: the range of ids is what is
// narrow.
const RUNS_BY_PREFIX: &str = "SELECT run_id
   FROM runs
  WHERE +namespace_id = ?1
    AND run_id BETWEEN ?2 AND ?3
  LIMIT 2";

const WORKER: &str = concat!(
    "SELECT ",
    worker!(columns),
    ", (SELECT count(*)
           FROM runs
          WHERE runs.lease_worker = workers.worker_id
            AND runs.lease_worker IS NOT NULL)
   FROM workers
  WHERE worker_id = ?1
    AND namespace_id = ?2"
);

const WORKERS_BY_PREFIX: &str = "SELECT worker_id
   FROM workers
  WHERE +namespace_id = ?1
    AND worker_id BETWEEN ?2 AND ?3
  LIMIT 2";
}

kagzi_store::statements! {
/// The statements behind the gauges: they walk an index of living runs, or the few workers.
COUNTS:

// The index of due runs holds all that is asked for, so finished runs cost nothing.
const COUNT_DUE: &str = "SELECT namespace_id, task_queue, SUM(due_at <= ?1), COUNT(*), MIN(due_at)
   FROM runs INDEXED BY runs_due
  WHERE due_at IS NOT NULL
  GROUP BY namespace_id, task_queue";

const COUNT_LEASED: &str = "SELECT namespace_id, task_queue, COUNT(*)
   FROM runs INDEXED BY runs_leased
  WHERE lease_worker IS NOT NULL
  GROUP BY namespace_id, task_queue";

const COUNT_WORKERS: &str = "SELECT namespace_id, status, COUNT(*)
   FROM workers
  GROUP BY namespace_id, status";

// Namespace by namespace, so that of the index only the sleeping ones are walked: it has the failed ones too.
const COUNT_WAITS: &str = "SELECT runs.namespace_id, json_extract(runs.state, '$.is'), COUNT(*)
   FROM namespaces
  CROSS JOIN runs INDEXED BY runs_by_status
     ON runs.namespace_id = namespaces.namespace_id
    AND runs.status = 3
    AND runs.status NOT IN (2, 4)
  GROUP BY 1, 2";
}

/// The reading side of the store.
pub struct SqliteReads {
    pool: ReadPool,
}

impl SqliteReads {
    pub(crate) fn new(pool: ReadPool) -> Self {
        SqliteReads { pool }
    }

    pub(crate) fn pool(&self) -> &ReadPool {
        &self.pool
    }
}

#[async_trait]
impl Reads for SqliteReads {
    async fn run(&self, namespace: &Name, id: RunId) -> Result<Option<RunView>, StoreError> {
        let namespace = namespace.clone();
        self.pool.read(move |db| read_run(db, &namespace, id)).await
    }

    async fn living(&self, runs: &[(Name, RunId)]) -> Result<Vec<RunId>, StoreError> {
        let runs = runs.to_vec();
        // A look-up by key each: a file is not shared, so nobody asks for many.
        self.pool
            .read(move |db| {
                let one =
                    |(namespace, id): (Name, RunId)| db.first(LIVES, bind![id, namespace], |row| row.get(0));
                runs.into_iter().filter_map(|run| one(run).transpose()).collect()
            })
            .await
    }

    async fn run_by_business(
        &self,
        namespace: &Name,
        business_id: &Name,
    ) -> Result<Option<RunId>, StoreError> {
        let (namespace, business_id) = (namespace.clone(), business_id.clone());
        self.pool
            .read(move |db| db.first(RUN_BY_BUSINESS, bind![namespace, business_id], |row| row.get(0)))
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
        self.pool
            .read(move |db| {
                let listing = run_listing(&namespace, &filter);
                db.transaction(|| list_page(db, &listing, &page, runs::place(filter.order.by), runs::read))
            })
            .await
    }

    async fn count_runs(&self, namespace: &Name, filter: &RunFilter) -> Result<Total, StoreError> {
        let (namespace, filter) = (namespace.clone(), filter.clone());
        self.pool.read(move |db| count(db, &run_listing(&namespace, &filter))).await
    }

    async fn events(
        &self,
        namespace: &Name,
        run: RunId,
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        let filter = EventFilter { after: after_seq, ..EventFilter::default() };
        let request = EventRequest { filter, beyond: None, upwards: true, limit, bytes_max: usize::MAX };
        Ok(self.history(namespace, run, &request).await?.events)
    }

    async fn history(
        &self,
        namespace: &Name,
        run: RunId,
        request: &EventRequest,
    ) -> Result<EventPiece, StoreError> {
        let (namespace, request) = (namespace.clone(), request.clone());
        self.pool.read(move |db| events::history(db, &namespace, run, &request)).await
    }

    async fn replay(
        &self,
        namespace: &Name,
        run: RunId,
        request: &EventRequest,
    ) -> Result<EventPiece, StoreError> {
        let (namespace, request) = (namespace.clone(), request.clone());
        self.pool.read_for_dispatch(move |db| events::history(db, &namespace, run, &request)).await
    }

    async fn outline(
        &self,
        namespace: &Name,
        run: RunId,
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<EventOutline>, StoreError> {
        let namespace = namespace.clone();
        self.pool.read(move |db| events::outline(db, &namespace, run, after_seq, limit)).await
    }

    async fn payloads(
        &self,
        namespace: &Name,
        run: RunId,
        seqs: &[u64],
    ) -> Result<Vec<(u64, Payload)>, StoreError> {
        let (namespace, seqs) = (namespace.clone(), seqs.to_vec());
        self.pool.read(move |db| events::payloads_of(db, &namespace, run, &seqs)).await
    }

    async fn worker_by_id(&self, namespace: &Name, id: WorkerId) -> Result<Option<WorkerView>, StoreError> {
        let namespace = namespace.clone();
        self.pool.read(move |db| db.first(WORKER, bind![id, namespace], worker_view)).await
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
    ) -> Result<(Page<WorkerView>, Total), StoreError> {
        let (namespace, filter, page) = (namespace.clone(), filter.clone(), *page);
        self.pool.read(move |db| list_workers(db, &namespace, &filter, &page)).await
    }

    async fn census(&self, now: Timestamp) -> Result<Census, StoreError> {
        let count = move |db: &Db| {
            let due = db.all(COUNT_DUE, bind![now], |row| {
                Ok(DueCount {
                    namespace: row.get(0)?,
                    task_queue: row.get(1)?,
                    ready: row.get(2)?,
                    total: row.get(3)?,
                    earliest: row.get(4)?,
                })
            })?;
            let leased = db.all(COUNT_LEASED, &[], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            let workers = db.all(COUNT_WORKERS, &[], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            Census::of(due, leased, workers)
        };
        self.pool.read(count).await
    }

    async fn waits(&self) -> Result<Vec<WaitCount>, StoreError> {
        let count =
            |row: &Row<'_>| Ok(WaitCount { namespace: row.get(0)?, reason: row.get(1)?, count: row.get(2)? });
        self.pool.read(move |db| db.all(COUNT_WAITS, &[], count)).await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.pool.read(|db| db.each("SELECT 1", &[], |_| Ok(()))).await
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
        self.pool.read(move |db| db.all(sql, bind![namespace, low, high], |row| row.get(0))).await
    }
}

/// The smallest and largest id that begin with these hexadecimal digits.
fn prefix_range(digits: &str) -> Option<(uuid::Uuid, uuid::Uuid)> {
    let low = uuid::Uuid::try_parse(&format!("{digits:0<32}")).ok()?;
    let high = uuid::Uuid::try_parse(&format!("{digits:f<32}")).ok()?;
    Some((low, high))
}

fn read_run(db: &Db, namespace: &Name, id: RunId) -> Result<Option<RunView>, StoreError> {
    // One snapshot, so that row and payloads belong together.
    db.transaction(|| {
        let Some(run) = db.first(RUN, bind![id, namespace], runs::read)? else { return Ok(None) };
        let (input, output) = events::ends(db, &run)?;
        Ok(Some(RunView { run, input, output }))
    })
}

fn worker_view(row: &Row<'_>) -> Result<WorkerView, StoreError> {
    Ok(WorkerView { worker: workers::read(row)?, active: row.get(worker!(width))? })
}

/// The listing of runs, as this dialect says it. Public to the tests that look at plans.
pub fn run_listing(namespace: &Name, filter: &RunFilter) -> Listing {
    listing::runs(SQLITE, run!(qualified), namespace, filter)
}

pub(crate) fn bound(statement: &Statement) -> Vec<Value<'_>> {
    let value = |value| match value {
        &listing::Value::Integer(number) => Value::Integer(number),
        listing::Value::Text(name) => Value::Text(name),
        listing::Value::Id(id) => Value::Blob(id.as_bytes()),
    };
    statement.bind.iter().map(value).collect()
}

pub(crate) fn list_page<T>(
    db: &Db,
    listing: &Listing,
    page: &PageRequest,
    (at, id): (usize, usize),
    mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
) -> Result<Page<T>, StoreError> {
    if listing.is_empty() {
        return Ok(Page::empty());
    }
    let wanted = listing.rows(page);
    let rows = db.all(&wanted.sql, &bound(&wanted), |row| {
        Listed::of(read(row), || Ok(Cursor { at: row.get(at)?, id: row.get(id)? }))
    })?;
    let other_side = match listing.other_side(page) {
        None => false,
        Some(behind) => db.first(&behind.sql, &bound(&behind), |row| row.get(0))?.unwrap_or(false),
    };
    Ok(Page::from_probe(rows, page, other_side))
}

fn count(db: &Db, listing: &Listing) -> Result<Total, StoreError> {
    if listing.is_empty() {
        return Ok(Total::of(0));
    }
    let counting = listing.count();
    let counted = db.first(&counting.sql, &bound(&counting), |row| row.get(0))?;
    Ok(Total::of(counted.unwrap_or(0)))
}

fn list_workers(
    db: &Db,
    namespace: &Name,
    filter: &WorkerFilter,
    page: &PageRequest,
) -> Result<(Page<WorkerView>, Total), StoreError> {
    let columns = worker!(qualified);
    let active = "SELECT count(*)
           FROM runs
          WHERE runs.lease_worker = workers.worker_id
            AND runs.lease_worker IS NOT NULL";
    let columns = format!("{columns}, ({active})");
    let listing = listing::workers(SQLITE, &columns, namespace, filter);
    db.transaction(|| Ok((list_page(db, &listing, page, workers::PLACE, worker_view)?, count(db, &listing)?)))
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
}
