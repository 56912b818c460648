//! Reading for people and for replay. Every read is one statement, so it sees one moment.

use std::{sync::Arc, time::Instant};

use async_trait::async_trait;
use futures_util::future::try_join;
use kagzi_model::{Event, Name, Payload, Run, RunId, Timestamp, WorkerId};
use kagzi_store::{
    Census, Cursor, DueCount, EventFilter, EventOutline, EventPiece, EventRequest, Listed, Page, PageRequest,
    Reads, RunFilter, RunView, StoreError, Total, WaitCount, WorkerFilter, WorkerView,
    listing::{self, Listing, POSTGRES, Statement},
    run, worker,
};
use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};
use uuid::Uuid;

use crate::{
    error::from_postgres,
    events,
    peers::Peers,
    pool::ReadPool,
    row, runs,
    session::{Bind, Session},
    workers,
};

kagzi_store::statements! {
/// Every fixed statement of the read path; a test prepares each on a real database.
STATEMENTS:

const RUN: &str = concat!(
    "SELECT ",
    run!(qualified),
    ",
        input.kinds, input.detail, input.payload, output.kinds, output.detail, output.payload
   FROM kagzi.runs
   LEFT JOIN kagzi.events AS input
     ON input.namespace_id = runs.namespace_id
    AND input.run_id = runs.run_id
    AND input.first_seq = coalesce(runs.first_seq, 1)
   LEFT JOIN LATERAL (
        SELECT events.kinds, events.detail, events.payload
          FROM kagzi.events
         WHERE events.namespace_id = runs.namespace_id
           AND events.run_id = runs.run_id
           AND position('\\x0d'::bytea IN events.kinds) > 0
         ORDER BY events.first_seq DESC
         LIMIT 1
        ) AS output ON runs.status = 4
  WHERE runs.namespace_id = $1
    AND runs.run_id = $2"
);

const RUN_BY_BUSINESS: &str = "SELECT run_id
   FROM kagzi.runs
  WHERE namespace_id = $1
    AND business_id = $2";

const RUNS_BY_PREFIX: &str = "SELECT run_id
   FROM kagzi.runs
  WHERE namespace_id = $1
    AND run_id BETWEEN $2 AND $3
  LIMIT 2";

const WORKER: &str = concat!(
    "SELECT ",
    worker!(columns),
    ",
        (SELECT count(*) FROM kagzi.runs WHERE runs.lease_worker = workers.worker_id)
   FROM kagzi.workers
  WHERE namespace_id = $1
    AND worker_id = $2"
);

const WORKERS_BY_PREFIX: &str = "SELECT worker_id
   FROM kagzi.workers
  WHERE namespace_id = $1
    AND worker_id BETWEEN $2 AND $3
  LIMIT 2";

// The index of due runs holds all that is asked for, so finished runs cost nothing.
const COUNT_DUE: &str =
    "SELECT namespace_id, task_queue, COUNT(*) FILTER (WHERE due_at <= $1), COUNT(*), MIN(due_at)
   FROM kagzi.runs
  WHERE due_at IS NOT NULL
  GROUP BY namespace_id, task_queue";

const COUNT_LEASED: &str = "SELECT namespace_id, task_queue, COUNT(*)
   FROM kagzi.runs
  WHERE lease_worker IS NOT NULL
  GROUP BY namespace_id, task_queue";

const COUNT_WORKERS: &str = "SELECT namespace_id, status::bigint, COUNT(*)
   FROM kagzi.workers
  GROUP BY namespace_id, status";

// Namespace by namespace, so that of the index only the sleeping ones are walked: it has the failed ones too.
const COUNT_WAITS: &str = "SELECT namespaces.namespace_id, waits.reason, waits.count
   FROM kagzi.namespaces
  CROSS JOIN LATERAL (SELECT runs.reason, COUNT(*) AS count
                        FROM kagzi.runs
                       WHERE runs.namespace_id = namespaces.namespace_id
                         AND runs.status = 3
                       GROUP BY runs.reason) AS waits";

// One statement for all who wait on a server, without a payload.
const LIVING: &str = "SELECT runs.run_id
   FROM unnest($1::text[], $2::uuid[]) AS waited (namespace_id, run_id)
   JOIN kagzi.runs
     ON runs.namespace_id = waited.namespace_id AND runs.run_id = waited.run_id
  WHERE runs.finished_at IS NULL";

// Only transactions that keep a snapshot or have written hold up the cleaning of rows.
const OLDEST_TRANSACTION: &str =
    "SELECT extract(epoch FROM clock_timestamp() - min(xact_start))::double precision
   FROM pg_stat_activity
  WHERE datname = current_database()
    AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)";
}

/// The reading side of the store.
pub struct PostgresReads {
    pool: ReadPool,
    peers: Arc<Peers>,
}

impl PostgresReads {
    pub(crate) fn new(pool: ReadPool, peers: Arc<Peers>) -> Self {
        PostgresReads { pool, peers }
    }

    pub(crate) fn pool(&self) -> &ReadPool {
        &self.pool
    }

    pub(crate) async fn query(&self, sql: &str, bind: Bind<'_>) -> Result<Vec<Row>, StoreError> {
        self.pool.read(|session| async move { session.query(sql, bind).await.map_err(from_postgres) }).await
    }

    async fn by_prefix(&self, sql: &str, namespace: &Name, digits: &str) -> Result<Vec<Uuid>, StoreError> {
        let Some((low, high)) = prefix_range(digits) else { return Ok(Vec::new()) };
        let rows = self.query(sql, &[&&**namespace, &low, &high]).await?;
        rows.iter().map(|found| row::get(found, 0)).collect()
    }
}

#[async_trait]
impl Reads for PostgresReads {
    async fn run(&self, namespace: &Name, id: RunId) -> Result<Option<RunView>, StoreError> {
        let rows = self.query(RUN, &[&&**namespace, &id.0]).await?;
        let Some(found) = rows.first() else { return Ok(None) };
        Ok(Some(RunView {
            run: runs::read(found)?,
            input: events::readable(events::input(found, run!(width)))?,
            output: events::readable(events::output(found, run!(width) + 3))?,
        }))
    }

    async fn living(&self, runs: &[(Name, RunId)]) -> Result<Vec<RunId>, StoreError> {
        let namespaces: Vec<&str> = runs.iter().map(|(namespace, _)| &**namespace).collect();
        let ids: Vec<Uuid> = runs.iter().map(|(_, run)| run.0).collect();
        let rows = self.query(LIVING, &[&namespaces, &ids]).await?;
        rows.iter().map(|found| row::get(found, 0).map(RunId)).collect()
    }

    fn has_peers(&self) -> bool {
        !self.peers.absent(Instant::now())
    }

    async fn run_by_business(
        &self,
        namespace: &Name,
        business_id: &Name,
    ) -> Result<Option<RunId>, StoreError> {
        let rows = self.query(RUN_BY_BUSINESS, &[&&**namespace, &&**business_id]).await?;
        rows.first().map(|found| row::get(found, 0).map(RunId)).transpose()
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
        let listing = run_listing(namespace, filter);
        let list = |session: Arc<Session>| {
            let listing = &listing;
            async move { list_page(&session, listing, page, runs::place(filter.order.by), runs::read).await }
        };
        self.pool.read(list).await
    }

    async fn count_runs(&self, namespace: &Name, filter: &RunFilter) -> Result<Total, StoreError> {
        let listing = run_listing(namespace, filter);
        let counting = |session: Arc<Session>| {
            let listing = &listing;
            async move { count(&session, listing).await }
        };
        self.pool.read(counting).await
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
        self.pool
            .read(|session| async move { events::history(&session, namespace, run, request).await })
            .await
    }

    async fn outline(
        &self,
        namespace: &Name,
        run: RunId,
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<EventOutline>, StoreError> {
        self.pool
            .read(|session| async move { events::outline(&session, namespace, run, after_seq, limit).await })
            .await
    }

    async fn payloads(
        &self,
        namespace: &Name,
        run: RunId,
        seqs: &[u64],
    ) -> Result<Vec<(u64, Payload)>, StoreError> {
        self.pool
            .read(|session| async move { events::payloads_of(&session, namespace, run, seqs).await })
            .await
    }

    async fn worker_by_id(&self, namespace: &Name, id: WorkerId) -> Result<Option<WorkerView>, StoreError> {
        let rows = self.query(WORKER, &[&&**namespace, &id.0]).await?;
        rows.first().map(worker_view).transpose()
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
        let listing = worker_listing(namespace, filter);
        let list = |session: Arc<Session>| {
            let listing = &listing;
            async move {
                let page = list_page(&session, listing, page, workers::PLACE, worker_view).await?;
                Ok((page, count(&session, listing).await?))
            }
        };
        self.pool.read(list).await
    }

    async fn census(&self, now: Timestamp) -> Result<Census, StoreError> {
        let count = |found: &Row, at: usize| row::get::<i64>(found, at).map(i64::cast_unsigned);
        let due = self.query(COUNT_DUE, &[&now.0]).await?;
        let due = due.iter().map(|found| {
            Ok(DueCount {
                namespace: row::name(found, 0)?,
                task_queue: row::name(found, 1)?,
                ready: count(found, 2)?,
                total: count(found, 3)?,
                earliest: Timestamp(row::get(found, 4)?),
            })
        });
        let due = due.collect::<Result<Vec<_>, StoreError>>()?;
        let leased = self.query(COUNT_LEASED, &[]).await?;
        let leased =
            leased.iter().map(|found| Ok((row::name(found, 0)?, row::name(found, 1)?, count(found, 2)?)));
        let leased = leased.collect::<Result<Vec<_>, StoreError>>()?;
        let workers = self.query(COUNT_WORKERS, &[]).await?;
        let workers =
            workers.iter().map(|found| Ok((row::name(found, 0)?, row::get(found, 1)?, count(found, 2)?)));
        Census::of(due, leased, workers.collect::<Result<Vec<_>, StoreError>>()?)
    }

    async fn waits(&self) -> Result<Vec<WaitCount>, StoreError> {
        let found = self.query(COUNT_WAITS, &[]).await?;
        let count = |found: &Row| {
            let count = row::get::<i64>(found, 2)?.cast_unsigned();
            Ok(WaitCount { namespace: row::name(found, 0)?, reason: row::name(found, 1)?, count })
        };
        found.iter().map(count).collect()
    }

    async fn oldest_transaction(&self) -> Result<Option<f64>, StoreError> {
        let rows = self.query(OLDEST_TRANSACTION, &[]).await?;
        rows.first().map_or(Ok(None), |found| row::get(found, 0))
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.pool
            .read(|session| async move { session.execute("SELECT 1").await.map_err(from_postgres) })
            .await
    }
}

fn worker_view(found: &Row) -> Result<WorkerView, StoreError> {
    let active: i64 = row::get(found, worker!(width))?;
    Ok(WorkerView { worker: workers::read(found)?, active: u32::try_from(active).unwrap_or(u32::MAX) })
}

/// The smallest and largest id that begin with these hexadecimal digits.
fn prefix_range(digits: &str) -> Option<(Uuid, Uuid)> {
    let low = Uuid::try_parse(&format!("{digits:0<32}")).ok()?;
    let high = Uuid::try_parse(&format!("{digits:f<32}")).ok()?;
    Some((low, high))
}

/// A sequence number as stored; one beyond the largest is after every event.
pub(crate) fn seq(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The listing of runs, as this dialect says it. Public to the tests that look at plans.
pub fn run_listing(namespace: &Name, filter: &RunFilter) -> Listing {
    listing::runs(POSTGRES, run!(qualified), namespace, filter)
}

fn worker_listing(namespace: &Name, filter: &WorkerFilter) -> Listing {
    const COLUMNS: &str = concat!(
        worker!(qualified),
        ", (SELECT count(*) FROM kagzi.runs WHERE runs.lease_worker = workers.worker_id)"
    );
    listing::workers(POSTGRES, COLUMNS, namespace, filter)
}

/// Runs a statement of a listing. Not kept prepared: filters come in too many combinations.
pub(crate) async fn query(session: &Session, statement: &Statement) -> Result<Vec<Row>, StoreError> {
    let values: Vec<(Box<dyn ToSql + Sync + Send>, Type)> = statement
        .bind
        .iter()
        .map(|value| -> (Box<dyn ToSql + Sync + Send>, Type) {
            match value {
                listing::Value::Integer(number) => (Box::new(*number), Type::INT8),
                listing::Value::Text(name) => (Box::new(name.to_string()), Type::TEXT),
                listing::Value::Id(id) => (Box::new(*id), Type::UUID),
            }
        })
        .collect();
    let bind: Vec<(&(dyn ToSql + Sync), Type)> =
        values.iter().map(|(value, kind)| (&**value as _, kind.clone())).collect();
    session.query_once(&statement.sql, &bind).await.map_err(from_postgres)
}

pub(crate) async fn list_page<T>(
    session: &Session,
    listing: &Listing,
    page: &PageRequest,
    (at, id): (usize, usize),
    read: impl Fn(&Row) -> Result<T, StoreError>,
) -> Result<Page<T>, StoreError> {
    if listing.is_empty() {
        return Ok(Page::empty());
    }
    let wanted = listing.rows(page);
    let (rows, other_side) = match listing.other_side(page) {
        None => (query(session, &wanted).await?, false),
        Some(behind) => {
            let (rows, behind) = try_join(query(session, &wanted), query(session, &behind)).await?;
            (rows, row::get(&behind[0], 0)?)
        }
    };
    let place = |found| Ok(Cursor { at: Timestamp(row::get(found, at)?), id: row::get(found, id)? });
    let rows = rows.iter().map(|found| Listed::of(read(found), || place(found)));
    let rows = rows.collect::<Result<Vec<Listed<T>>, _>>()?;
    Ok(Page::from_probe(rows, page, other_side))
}

async fn count(session: &Session, listing: &Listing) -> Result<Total, StoreError> {
    if listing.is_empty() {
        return Ok(Total::of(0));
    }
    let rows = query(session, &listing.count()).await?;
    Ok(Total::of(row::get::<i64>(&rows[0], 0)?.cast_unsigned()))
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
