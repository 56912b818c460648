//! Runs: the statements about their table.

use std::sync::Arc;

use futures_util::future::try_join;
use kagzi_model::{Aggregate, Labels, Name, Payload, Reason, Run, RunId, State, Timestamp};
use kagzi_store::{
    DueKey, DueQuery, DueRun, FoundBusiness, Loaded, OrderBy, RunKey, RunRows, StoreError, run,
};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::{
    backend::PostgresBackend,
    events, row,
    session::{Bind, Session},
    write::{Columns, Sending, column, send, text, to_json},
};

kagzi_store::statements! {
/// Every statement about runs on the writing connection; a test prepares each on a real database.
STATEMENTS:

// Locked in id order, so that two servers that need the same runs wait for each other and never crosswise.
const LOAD_RUNS: &str = concat!(
    "SELECT ",
    run!(qualified),
    "
   FROM unnest($1::text[], $2::uuid[]) AS wanted (namespace_id, run_id)
   JOIN kagzi.runs ON runs.namespace_id = wanted.namespace_id AND runs.run_id = wanted.run_id
  ORDER BY runs.run_id
    FOR UPDATE OF runs"
);

// All ids of a batch in one statement: at a millisecond to the database, one each would be the whole lane.
// Each is looked up by itself: joined, a planner that has not counted a growing table yet reads all of it for
// every batch, and ten thousand starts with ids took minutes.
const FIND_BUSINESS: &str = concat!(
    "SELECT ",
    run!(qualified),
    ", first.kinds, first.detail, first.payload, wanted.place
   FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS wanted (namespace_id, business_id, place)
  CROSS JOIN LATERAL (
        SELECT *
          FROM kagzi.runs
         WHERE runs.namespace_id = wanted.namespace_id
           AND runs.business_id = wanted.business_id
         LIMIT 1
       ) AS runs
  CROSS JOIN LATERAL (
        SELECT events.kinds, events.detail, events.payload
          FROM kagzi.events
         WHERE events.namespace_id = runs.namespace_id
           AND events.run_id = runs.run_id
           AND events.first_seq = 1
         LIMIT 1
       ) AS first"
);

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

const LIVING: &str = "SELECT runs.run_id
   FROM unnest($1::text[], $2::uuid[]) AS wanted (namespace_id, run_id)
   JOIN kagzi.runs ON runs.namespace_id = wanted.namespace_id AND runs.run_id = wanted.run_id
  WHERE runs.finished_at IS NULL";

const UNNAME_RUNS: &str = "UPDATE kagzi.runs
    SET business_id = NULL
   FROM unnest($1::text[], $2::uuid[]) AS named (namespace_id, run_id)
  WHERE runs.namespace_id = named.namespace_id
    AND runs.run_id = named.run_id";

const INSERT_RUNS: &str = concat!(
    "INSERT INTO kagzi.runs (",
    run!(inserted),
    ", reason)
 SELECT *
   FROM unnest(",
    run!(arrays),
    ", $24::text[])"
);

// A row whose version is not one lower was written by another server. That must end the transaction here and
// now, because the COMMIT is already on its way behind this statement: the division by zero does.
const UPDATE_RUNS: &str = concat!(
    "WITH done AS (
    UPDATE kagzi.runs
       SET ",
    run!(set_new),
    ", reason = new.reason
      FROM unnest(",
    run!(changed_arrays),
    ", $18::text[])
           AS new (",
    run!(changed),
    ", reason)
     WHERE runs.namespace_id = new.namespace_id
       AND runs.run_id = new.run_id
       AND runs.version = new.version - 1
 RETURNING 1
)
SELECT 1 / (count(*) = cardinality($2))::integer
  FROM done"
);
}

impl RunRows for PostgresBackend {
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
        let each = |found: &Row| {
            let place = usize::try_from(row::get::<i64>(found, run!(width) + 3)? - 1).unwrap_or(0);
            FoundBusiness::of(
                place,
                RunId(row::get(found, 1)?),
                events::input(found, run!(width)),
                read(found),
            )
        };
        rows.iter().map(each).collect()
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
        let (namespaces, ids) = row::key_columns(keys);
        let rows = self.query(LIVING, &[&namespaces, &ids]).await?;
        rows.iter().map(|found| row::get(found, 0).map(RunId)).collect()
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
    let mut aggregate = Aggregate::before_history(read(run)?);
    events::absorb(&mut aggregate, history)?;
    Ok(aggregate)
}

/// The statements that write runs, in order: names are given up before they are taken.
pub fn statements(
    session: &Session,
    mut unnamed: Vec<RunKey>,
    mut inserted: Vec<Run>,
    mut updated: Vec<Run>,
) -> Vec<Sending<'_>> {
    let mut sending: Vec<Sending<'_>> = Vec::new();
    // In id order, as rows are always locked: two servers that meet wait for each other, and never crosswise.
    unnamed.sort_unstable_by_key(|key| key.id);
    inserted.sort_unstable_by_key(|run| run.id);
    updated.sort_unstable_by_key(|run| run.id);
    if !unnamed.is_empty() {
        sending.push(Box::pin(async move {
            let (namespaces, ids) = row::key_columns(&unnamed);
            session.query(UNNAME_RUNS, &[&namespaces, &ids]).await.map(drop)
        }));
    }
    if !inserted.is_empty() {
        sending.push(Box::pin(async move { send(session, INSERT_RUNS, inserted_columns(&inserted)).await }));
    }
    if !updated.is_empty() {
        sending.push(Box::pin(async move {
            let mut columns = changed_columns(&updated);
            columns.push(column(&updated, |run| run.state.reason().map(Reason::name)));
            send(session, UPDATE_RUNS, columns).await
        }));
    }
    sending
}

fn changed_columns(runs: &[Run]) -> Columns<'_> {
    let columns: [_; run!(changed_width)] = [
        column(runs, |run| &*run.namespace),
        column(runs, |run| run.id.0),
        column(runs, |run| run.version.cast_signed()),
        column(runs, |run| to_json(&run.state)),
        column(runs, |run| run.epoch.cast_signed()),
        column(runs, |run| count(run.attempts)),
        column(runs, |run| count(run.dispatch_count)),
        column(runs, |run| count(run.crashes)),
        column(runs, |run| run.started_at.map(|at| at.0)),
        column(runs, |run| run.finished_at.map(|at| at.0)),
        // Changes when a run is reopened after its deadline.
        column(runs, |run| run.deadline_at.map(|at| at.0)),
        column(runs, |run| (!run.labels.is_empty()).then(|| to_json(&run.labels))),
        column(runs, |run| run.sweep_at().map(|at| at.0)),
        column(runs, |run| run.state.status() as i16),
        column(runs, |run| run.due_at().map(|at| at.0)),
        column(runs, |run| run.lease().map(|lease| lease.worker.0)),
        column(runs, |run| run.state.error_code().map(|code| text(code))),
    ];
    columns.into()
}

fn inserted_columns(runs: &[Run]) -> Columns<'_> {
    let mut columns = changed_columns(runs);
    columns.extend([
        column(runs, |run| run.business_id.as_deref()),
        column(runs, |run| &*run.workflow_type),
        column(runs, |run| &*run.task_queue),
        column(runs, |run| run.created_at.0),
        column(runs, |run| to_json(&*run.options)),
        column(runs, |run| run.schedule().map(|id| &**id)),
    ]);
    debug_assert_eq!(columns.len(), run!(inserted_width));
    columns.push(column(runs, |run| run.state.reason().map(Reason::name)));
    columns
}

fn count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The columns that are a run's place in a list.
pub fn place(order: OrderBy) -> (usize, usize) {
    match order {
        OrderBy::CreatedAt => (16, 1),
        OrderBy::FinishedAt => (9, 1),
    }
}

/// Reads a run.
pub fn read(row: &Row) -> Result<Run, StoreError> {
    let state: State = row::json(row, 3)?;
    // Only an ended run stores a time here that does not follow from the rest.
    let sweep_at = row::get::<Option<i64>>(row, 12)?.map(Timestamp);
    let close_at = sweep_at.filter(|_| state.finished());
    Ok(Run {
        namespace: row::name(row, 0)?,
        id: RunId(row::get(row, 1)?),
        version: row::get::<i64>(row, 2)?.cast_unsigned(),
        state,
        epoch: row::get::<i64>(row, 4)?.cast_unsigned(),
        attempts: row::get::<i32>(row, 5)?.cast_unsigned(),
        dispatch_count: row::get::<i32>(row, 6)?.cast_unsigned(),
        crashes: row::get::<i32>(row, 7)?.cast_unsigned(),
        started_at: row::get::<Option<i64>>(row, 8)?.map(Timestamp),
        finished_at: row::get::<Option<i64>>(row, 9)?.map(Timestamp),
        deadline_at: row::get::<Option<i64>>(row, 10)?.map(Timestamp),
        close_at,
        labels: labels(row, 11)?,
        business_id: row::get::<Option<&str>>(row, 13)?.map(Name::from),
        workflow_type: row::name(row, 14)?,
        task_queue: row::name(row, 15)?,
        created_at: Timestamp(row::get(row, 16)?),
        options: Arc::new(row::json(row, 17)?),
        generation: row::get::<Option<i64>>(row, 18)?.map_or(1, |number| number as u32),
        first_seq: row::get::<Option<i64>>(row, 19)?.map_or(1, i64::cast_unsigned),
    })
}

fn labels(row: &Row, at: usize) -> Result<Labels, StoreError> {
    if row::get::<Option<&str>>(row, at)?.is_some() { row::json(row, at) } else { Ok(Labels::default()) }
}
