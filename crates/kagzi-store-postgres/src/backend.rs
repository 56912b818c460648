//! The writing side: one connection, one transaction at a time, as few round trips as the turn allows.

use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::{join, join_all, try_join};
use kagzi_model::{Aggregate, Name, Payload, RunId, Timestamp, WorkerId};
use kagzi_store::{
    Backend, DueKey, DueQuery, DueRun, FoundBusiness, Loaded, LoadedWorkers, RetireQuery, RunKey, StoreError,
    WorkersQuery, WriteSet,
};
use tokio_postgres::{Config, Error, Row};
use tokio_util::sync::DropGuard;
use tracing::{info, warn};
use uuid::Uuid;

use crate::{
    controls::{self, RequiredVersions},
    error::from_postgres,
    events,
    options::PostgresOptions,
    retention,
    row::{self, RUN_WIDTH},
    schedules,
    session::{Backoff, Bind, Purpose, Session, settings, too_slow},
    workers, write,
};

// Locked in id order, so that two servers that need the same runs wait for each other and never crosswise.
const LOAD_RUNS: &str = "SELECT runs.namespace_id, runs.run_id, runs.business_id, runs.workflow_type, \
                         runs.task_queue, runs.state,
        runs.version, runs.epoch, runs.attempts, runs.dispatch_count, runs.crashes, runs.created_at,
        runs.started_at, runs.finished_at, runs.deadline_at, runs.options, runs.labels
   FROM unnest($1::text[], $2::uuid[]) AS wanted (namespace_id, run_id)
   JOIN kagzi.runs ON runs.namespace_id = wanted.namespace_id AND runs.run_id = wanted.run_id
  ORDER BY runs.run_id
    FOR UPDATE OF runs";

// All ids of a batch in one statement: at a millisecond to the database, one each would be the whole lane.
const FIND_BUSINESS: &str =
    "SELECT runs.namespace_id, runs.run_id, runs.business_id, runs.workflow_type, runs.task_queue, runs.state,
        runs.version, runs.epoch, runs.attempts, runs.dispatch_count, runs.crashes, runs.created_at,
        runs.started_at, runs.finished_at, runs.deadline_at, runs.options, runs.labels,
        events.kinds, events.detail, events.payload, wanted.place
   FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS wanted (namespace_id, business_id, place)
   JOIN kagzi.runs ON runs.namespace_id = wanted.namespace_id AND runs.business_id = wanted.business_id
   JOIN kagzi.events
     ON events.namespace_id = runs.namespace_id AND events.run_id = runs.run_id AND events.first_seq = 1";

const INPUT_OF_RUN: &str = "SELECT events.kinds, events.detail, events.payload
   FROM kagzi.runs
   JOIN kagzi.events
     ON events.namespace_id = runs.namespace_id AND events.run_id = runs.run_id AND events.first_seq = 1
  WHERE runs.namespace_id = $1
    AND runs.run_id = $2";

// What another server is claiming at this moment is passed over, not waited for. All keys in one statement: a
// turn asks once, however many queues wait.
const DUE: &str = "SELECT wanted.place, found.due_at, found.run_id
   FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $7::bigint[]) WITH ORDINALITY
        AS wanted (namespace_id, task_queue, workflow_type, len, since, place)
  CROSS JOIN LATERAL (
        SELECT due_at, run_id
          FROM kagzi.runs
         WHERE runs.namespace_id = wanted.namespace_id
           AND runs.task_queue = wanted.task_queue
           AND runs.workflow_type = wanted.workflow_type
           AND runs.due_at >= wanted.since
           AND runs.due_at <= $5
           AND runs.run_id <> ALL($6::uuid[])
         ORDER BY runs.due_at, runs.run_id
         LIMIT wanted.len
           FOR UPDATE SKIP LOCKED) AS found";

// Passes over nothing but what is left alone, so that it tells of what DUE did not see.
const NEXT_DUE: &str = "SELECT (
        SELECT due_at
          FROM kagzi.runs
         WHERE runs.namespace_id = wanted.namespace_id
           AND runs.task_queue = wanted.task_queue
           AND runs.workflow_type = wanted.workflow_type
           AND runs.due_at >= wanted.since
           AND runs.run_id <> ALL($5::uuid[])
         ORDER BY runs.due_at
         LIMIT 1 OFFSET wanted.len)
   FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $6::bigint[]) WITH ORDINALITY
        AS wanted (namespace_id, task_queue, workflow_type, len, since, place)
  ORDER BY wanted.place";

const SWEEP_DUE: &str = "SELECT run_id, namespace_id
   FROM kagzi.runs
  WHERE sweep_at >= $4
    AND sweep_at <= $1
    AND run_id <> ALL($3::uuid[])
  ORDER BY sweep_at, run_id
  LIMIT $2
    FOR UPDATE SKIP LOCKED";

const NEXT_SWEEP: &str = "SELECT sweep_at
   FROM kagzi.runs
  WHERE sweep_at >= $2
    AND run_id <> ALL($1::uuid[])
  ORDER BY sweep_at
  LIMIT 1";

// Asked whenever a run fails; the newest worker that registered it decides.
const HANDLER_QUEUE: &str = "SELECT task_queue
   FROM kagzi.workers
  WHERE namespace_id = $1
    AND handles_failures
  ORDER BY registered_at DESC, worker_id DESC
  LIMIT 1";

// Any statement will do: the transaction that it begins must be allowed to write.
const PROBE: &str = "SELECT 1";

/// Every statement by which the lane finds and loads; a test prepares each on a real database.
pub const STATEMENTS: &[(&str, &str)] = &[
    ("LOAD_RUNS", LOAD_RUNS),
    ("FIND_BUSINESS", FIND_BUSINESS),
    ("INPUT_OF_RUN", INPUT_OF_RUN),
    ("DUE", DUE),
    ("NEXT_DUE", NEXT_DUE),
    ("SWEEP_DUE", SWEEP_DUE),
    ("NEXT_SWEEP", NEXT_SWEEP),
    ("HANDLER_QUEUE", HANDLER_QUEUE),
    ("PROBE", PROBE),
];

/// Statements in one flight: `join_all` sends that many in order. A turn has at most three write sets.
const FLIGHT_LEN_MAX: usize = 30;

/// The connection that writes. It is made anew when it is lost, at the next batch.
pub struct PostgresBackend {
    config: Config,
    options: PostgresOptions,
    /// Names this server in the rows of the workers that stand by here.
    server: Uuid,
    begin_sql: String,
    session: Option<Arc<Session>>,
    /// BEGIN was sent. It waits for the first statement of the transaction, and an empty one sends nothing at
    /// all.
    begun: bool,
    /// Rows that are written with the next statement that has an answer, or with the commit.
    held_back: Vec<WriteSet>,
    /// What the commit proves about the rules.
    required_versions: RequiredVersions,
    backoff: Backoff,
    round_trips: u64,
    connect_after: Option<Instant>,
    /// Ends the other tasks of the store when the lane ends.
    _stop: DropGuard,
}

impl PostgresBackend {
    pub async fn connect(
        config: Config,
        options: PostgresOptions,
        server: Uuid,
        stop: DropGuard,
    ) -> Result<Self, StoreError> {
        let local =
            if options.notify { String::new() } else { settings("SET LOCAL", &options, Purpose::Write) };
        let mut backend = PostgresBackend {
            begin_sql: format!("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {local}"),
            config,
            options,
            server,
            session: None,
            begun: false,
            held_back: Vec::new(),
            required_versions: RequiredVersions::default(),
            backoff: Backoff::default(),
            round_trips: 0,
            connect_after: None,
            _stop: stop,
        };
        backend.session = Some(backend.open().await?);
        Ok(backend)
    }

    async fn open(&self) -> Result<Arc<Session>, StoreError> {
        let session = Session::connect(&self.config, &self.options, Purpose::Write).await?;
        let preparing = session.prepare_all(
            STATEMENTS
                .iter()
                .chain(workers::STATEMENTS)
                .chain(write::STATEMENTS)
                .chain(events::WRITE_STATEMENTS)
                .chain(controls::STATEMENTS)
                .chain(schedules::STATEMENTS)
                .chain(retention::STATEMENTS),
        );
        let prepared = tokio::time::timeout(self.options.connect_timeout, preparing).await;
        match prepared.unwrap_or_else(|_| Err(too_slow("preparing the statements"))) {
            Ok(()) => Ok(Arc::new(session)),
            Err(error) => {
                session.abandon();
                Err(error)
            }
        }
    }

    /// Connects again if need be; between attempts it fails at once, so that nobody queues for a dead
    /// database.
    async fn reconnect(&mut self) -> Result<(), StoreError> {
        if self.session.as_ref().is_some_and(|session| !session.closed()) {
            return Ok(());
        }
        self.session = None;
        if self.connect_after.is_some_and(|at| Instant::now() < at) {
            return Err(StoreError::Unavailable("the database is away, trying again soon".into()));
        }
        match self.open().await {
            Ok(session) => {
                info!("connected to the database again");
                self.backoff.reset();
                self.connect_after = None;
                self.session = Some(session);
                Ok(())
            }
            Err(error) => {
                self.connect_after = Some(Instant::now() + self.backoff.next());
                Err(error)
            }
        }
    }

    pub(crate) fn required_versions_mut(&mut self) -> &mut RequiredVersions {
        &mut self.required_versions
    }

    /// This server, as the rows of the workers that stand by here name it.
    pub(crate) fn server(&self) -> Uuid {
        self.server
    }

    pub(crate) fn session(&self) -> Result<Arc<Session>, StoreError> {
        self.session.clone().ok_or_else(|| StoreError::Unavailable("the database is away".into()))
    }

    /// Sends BEGIN, the rows held back, and `last`, without waiting in between, and then hears all answers.
    pub(crate) async fn flight<T>(
        &mut self,
        session: &Session,
        last: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, StoreError> {
        self.flight_with(session, Vec::new(), last).await
    }

    /// The same, with statements that come after the rows.
    async fn flight_with<T>(
        &mut self,
        session: &Session,
        after: Vec<write::Sending<'_>>,
        last: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, StoreError> {
        let mut ahead = Vec::new();
        if !std::mem::replace(&mut self.begun, true) {
            let begin: futures_util::future::BoxFuture<'_, _> = Box::pin(session.execute(&self.begin_sql));
            ahead.push(begin);
        }
        for set in self.held_back.drain(..) {
            ahead.extend(write::statements(session, self.server, set));
        }
        ahead.extend(after);
        debug_assert!(ahead.len() < FLIGHT_LEN_MAX, "a longer flight would be sent out of order");
        self.round_trips += 1;
        // Twice the statement's own timeout: the server is the first to give up, and says why.
        let patience = self.options.statement_timeout * 2 + Duration::from_secs(1);
        let answers = tokio::time::timeout(patience, join(join_all(ahead), last)).await;
        let Ok((ahead, last)) = answers else {
            self.drop_session();
            return Err(too_slow("a batch"));
        };
        // The first error is the cause; those behind it only say that the transaction has ended.
        let first = ahead.into_iter().find_map(Result::err);
        let result = match (first, last) {
            (Some(error), _) | (None, Err(error)) => Err(error),
            (None, Ok(answer)) => Ok(answer),
        };
        result.map_err(|error| {
            let error = from_postgres(error);
            if matches!(error, StoreError::Unavailable(_)) {
                // Perhaps a failover left this session on a replica: only a new one finds out.
                self.drop_session();
            }
            error
        })
    }

    fn drop_session(&mut self) {
        self.begun = false;
        if let Some(session) = self.session.take() {
            warn!("the database connection is given up");
            session.abandon();
        }
    }

    pub(crate) async fn query(&mut self, sql: &str, bind: Bind<'_>) -> Result<Vec<Row>, StoreError> {
        let session = self.session()?;
        self.flight(&session, session.query(sql, bind)).await
    }
}

impl Backend for PostgresBackend {
    async fn begin(&mut self) -> Result<(), StoreError> {
        self.begun = false;
        self.held_back.clear();
        self.required_versions.clear();
        self.reconnect().await
    }

    async fn commit(&mut self) -> Result<(), StoreError> {
        if !self.begun && self.held_back.is_empty() {
            return Ok(());
        }
        let session = self.session()?;
        let proofs = std::mem::take(&mut self.required_versions).statements(&session);
        self.flight_with(&session, proofs, session.execute("COMMIT")).await?;
        self.begun = false;
        Ok(())
    }

    fn round_trips(&self) -> u64 {
        self.round_trips
    }

    async fn probe(&mut self) -> Result<(), StoreError> {
        self.query(PROBE, &[]).await.map(drop)
    }

    async fn rollback(&mut self) {
        self.held_back.clear();
        if !std::mem::replace(&mut self.begun, false) {
            return;
        }
        let Ok(session) = self.session() else { return };
        let ended = tokio::time::timeout(self.options.statement_timeout, session.execute("ROLLBACK")).await;
        if !matches!(ended, Ok(Ok(()))) {
            // Its transaction ends with it.
            self.drop_session();
        }
    }

    async fn load(&mut self, keys: &[RunKey]) -> Result<Loaded, StoreError> {
        let session = self.session()?;
        let namespaces: Vec<&str> = keys.iter().map(|key| &*key.namespace).collect();
        let ids: Vec<Uuid> = keys.iter().map(|key| key.id.0).collect();
        let bind: Bind<'_> = &[&namespaces, &ids];
        let both = try_join(session.query(LOAD_RUNS, bind), session.query(events::LOAD_EVENTS, bind));
        let (runs, events) = self.flight(&session, both).await?;
        // Both are in id order.
        let mut events = events.as_slice();
        let mut loaded = Loaded::default();
        for found in &runs {
            let id: Uuid = row::get(found, 1)?;
            let before = events.iter().take_while(|event| event.get::<_, Uuid>(4) < id).count();
            let own = events[before..].iter().take_while(|event| event.get::<_, Uuid>(4) == id).count();
            let (mine, rest) = events[before..].split_at(own);
            events = rest;
            match aggregate(found, mine) {
                Ok(aggregate) => loaded.runs.push(aggregate),
                Err(StoreError::Corrupt(why)) => {
                    let key = RunKey { id: RunId(id), namespace: row::name(found, 0)? };
                    loaded.unreadable.push((key, why));
                }
                Err(other) => return Err(other),
            }
        }
        Ok(loaded)
    }

    async fn find_business(&mut self, ids: &[(Name, Name)]) -> Result<Vec<FoundBusiness>, StoreError> {
        let namespaces: Vec<&str> = ids.iter().map(|(namespace, _)| &**namespace).collect();
        let business: Vec<&str> = ids.iter().map(|(_, id)| &**id).collect();
        let rows = self.query(FIND_BUSINESS, &[&namespaces, &business]).await?;
        let read = |found: &Row| {
            let place = usize::try_from(row::get::<i64>(found, RUN_WIDTH + 3)? - 1).unwrap_or(0);
            FoundBusiness::of(
                place,
                RunId(row::get(found, 1)?),
                events::input(found, RUN_WIDTH),
                row::run(found),
            )
        };
        rows.iter().map(read).collect()
    }

    async fn input(&mut self, key: &RunKey) -> Result<Option<Payload>, StoreError> {
        let rows = self.query(INPUT_OF_RUN, &[&&*key.namespace, &key.id.0]).await?;
        let Some(found) = rows.first() else { return Ok(None) };
        Ok(Some(events::input(found, 0)?.unwrap_or_else(|| Payload::new(&b""[..]))))
    }

    async fn due(&mut self, query: &DueQuery<'_>) -> Result<Vec<DueRun>, StoreError> {
        let keys = KeyColumns::of(query.keys);
        let aside: Vec<Uuid> = query.aside.iter().map(|id| id.0).collect();
        let bind: Bind<'_> =
            &[&keys.namespaces, &keys.queues, &keys.types, &keys.lens, &query.now.0, &aside, &keys.since];
        let rows = self.query(DUE, bind).await?;
        let read = |found: &Row| {
            let key = usize::try_from(row::get::<i64>(found, 0)? - 1).unwrap_or(0);
            Ok(DueRun { at: Timestamp(row::get(found, 1)?), run: RunId(row::get(found, 2)?), key })
        };
        let mut found = rows.iter().map(read).collect::<Result<Vec<DueRun>, StoreError>>()?;
        found.sort_unstable();
        Ok(found)
    }

    async fn next_due(
        &mut self,
        keys: &[DueKey],
        aside: &[RunId],
    ) -> Result<Vec<Option<Timestamp>>, StoreError> {
        let keys = KeyColumns::of(keys);
        let aside: Vec<Uuid> = aside.iter().map(|id| id.0).collect();
        let bind: Bind<'_> = &[&keys.namespaces, &keys.queues, &keys.types, &keys.lens, &aside, &keys.since];
        let rows = self.query(NEXT_DUE, bind).await?;
        rows.iter().map(|found| Ok(row::get::<Option<i64>>(found, 0)?.map(Timestamp))).collect()
    }

    async fn sweep_due(
        &mut self,
        from: Timestamp,
        now: Timestamp,
        limit: usize,
        aside: &[RunId],
    ) -> Result<Vec<RunKey>, StoreError> {
        let aside: Vec<Uuid> = aside.iter().map(|id| id.0).collect();
        let rows = self.query(SWEEP_DUE, &[&now.0, &(limit as i64), &aside, &from.0]).await?;
        rows.iter().map(row::run_key).collect()
    }

    async fn next_sweep(
        &mut self,
        from: Timestamp,
        aside: &[RunId],
    ) -> Result<Option<Timestamp>, StoreError> {
        let aside: Vec<Uuid> = aside.iter().map(|id| id.0).collect();
        let rows = self.query(NEXT_SWEEP, &[&aside, &from.0]).await?;
        rows.first().map(|found| row::get(found, 0).map(Timestamp)).transpose()
    }

    async fn living(&mut self, keys: &[RunKey]) -> Result<Vec<RunId>, StoreError> {
        let (namespaces, ids) = retention::columns(keys);
        let rows = self.query(retention::LIVING, &[&namespaces, &ids]).await?;
        rows.iter().map(|found| row::get(found, 0).map(RunId)).collect()
    }

    async fn retirable(&mut self, query: &RetireQuery<'_>) -> Result<Vec<(RunKey, Timestamp)>, StoreError> {
        let RetireQuery { now, keep_ms, after, limit } = query;
        let rows = self.query(retention::RETIRABLE, &[&&***after, &now.0, keep_ms, &(*limit as i64)]).await?;
        retention::found(&rows)
    }

    async fn retire(&mut self, keys: &[RunKey]) -> Result<(), StoreError> {
        let (namespaces, ids) = retention::columns(keys);
        self.query(retention::RETIRE, &[&namespaces, &ids]).await.map(drop)
    }

    async fn purge(&mut self, limit: usize) -> Result<usize, StoreError> {
        let rows = self.query(retention::PURGE, &[&(limit as i64)]).await?;
        self.query(retention::FORGET_RETIRED, &[]).await?;
        Ok(usize::try_from(row::get::<i64>(&rows[0], 0)?).unwrap_or(0))
    }

    async fn handler_queue(&mut self, namespace: &Name) -> Result<Option<Name>, StoreError> {
        let rows = self.query(HANDLER_QUEUE, &[&&**namespace]).await?;
        rows.first().map(|found| row::name(found, 0)).transpose()
    }

    async fn load_workers(&mut self, query: &WorkersQuery<'_>) -> Result<LoadedWorkers, StoreError> {
        self.load_worker_rows(query).await
    }

    async fn stand_by(&mut self, ids: &[WorkerId]) -> Result<LoadedWorkers, StoreError> {
        self.stand_by_rows(ids).await
    }

    async fn standing(&mut self, ids: &[WorkerId]) -> Result<Vec<WorkerId>, StoreError> {
        self.standing_ids(ids).await
    }

    async fn leased_by(&mut self, id: WorkerId) -> Result<Vec<RunKey>, StoreError> {
        self.leased_by_worker(id).await
    }

    async fn stale_workers(&mut self, before: Timestamp, limit: usize) -> Result<Vec<WorkerId>, StoreError> {
        self.stale_worker_ids(before, limit).await
    }

    async fn write(&mut self, set: WriteSet) -> Result<(), StoreError> {
        self.required_versions.change(&set.namespaces);
        self.held_back.push(set);
        Ok(())
    }
}

/// The keys of a search, column by column.
struct KeyColumns<'k> {
    namespaces: Vec<&'k str>,
    queues: Vec<&'k str>,
    types: Vec<&'k str>,
    lens: Vec<i64>,
    since: Vec<i64>,
}

impl<'k> KeyColumns<'k> {
    fn of(keys: &'k [DueKey]) -> Self {
        KeyColumns {
            namespaces: keys.iter().map(|wanted| &*wanted.key.namespace).collect(),
            queues: keys.iter().map(|wanted| &*wanted.key.task_queue).collect(),
            types: keys.iter().map(|wanted| &*wanted.key.workflow_type).collect(),
            lens: keys.iter().map(|wanted| wanted.len as i64).collect(),
            since: keys.iter().map(|wanted| wanted.from.0).collect(),
        }
    }
}

/// A run from its row and its events, in order.
fn aggregate(run: &Row, history: &[Row]) -> Result<Aggregate, StoreError> {
    let mut aggregate = Aggregate::new(row::run(run)?, 0);
    events::absorb(&mut aggregate, history)?;
    Ok(aggregate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::RUN_COLUMNS;

    #[test]
    fn column_lists_match_the_readers() {
        let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");

        assert!(squeeze(LOAD_RUNS).contains(&squeeze(RUN_COLUMNS)));
    }
}
