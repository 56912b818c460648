//! The rows of a batch as arrays: one statement per table and kind of write, however many rows there are.

use std::borrow::Cow;

use futures_util::future::BoxFuture;
use kagzi_model::{Reason, Run, Worker};
use kagzi_store::{Changes, LabelRow, WriteSet};
use tokio_postgres::{Error, types::ToSql};
use uuid::Uuid;

use crate::{controls, events, row::lease_worker, schedules, session::Session};

const UNNAME_RUNS: &str = "UPDATE kagzi.runs
    SET business_id = NULL
   FROM unnest($1::text[], $2::uuid[]) AS named (namespace_id, run_id)
  WHERE runs.namespace_id = named.namespace_id
    AND runs.run_id = named.run_id";

const INSERT_RUNS: &str =
    "INSERT INTO kagzi.runs (namespace_id, run_id, version, status, state, epoch, due_at, sweep_at, \
     lease_worker,
                  attempts, dispatch_count, crashes, started_at, finished_at, deadline_at, reason, \
                  error_code, labels,
                  business_id, workflow_type, task_queue, created_at, options, schedule_id)
 SELECT *
   FROM unnest($1::text[], $2::uuid[], $3::bigint[], $4::smallint[], $5::text[], $6::bigint[], $7::bigint[],
               $8::bigint[], $9::uuid[], $10::integer[], $11::integer[], $12::integer[], $13::bigint[],
               $14::bigint[], $15::bigint[], $16::text[], $17::text[], $18::text[], $19::text[], $20::text[],
               $21::text[], $22::bigint[], $23::text[], $24::text[])";

// A row whose version is not one lower was written by another server. That must end the transaction here and
// now, because the COMMIT is already on its way behind this statement: the division by zero does.
const UPDATE_RUNS: &str = "WITH done AS (
    UPDATE kagzi.runs
       SET version = new.version, status = new.status, state = new.state, epoch = new.epoch,
           due_at = new.due_at, sweep_at = new.sweep_at, lease_worker = new.lease_worker,
           attempts = new.attempts, dispatch_count = new.dispatch_count, crashes = new.crashes,
           started_at = new.started_at, finished_at = new.finished_at, deadline_at = new.deadline_at,
           reason = new.reason, error_code = new.error_code, labels = new.labels
      FROM unnest($1::text[], $2::uuid[], $3::bigint[], $4::smallint[], $5::text[], $6::bigint[], \
      $7::bigint[],
                  $8::bigint[], $9::uuid[], $10::integer[], $11::integer[], $12::integer[], $13::bigint[],
                  $14::bigint[], $15::bigint[], $16::text[], $17::text[], $18::text[])
           AS new (namespace_id, run_id, version, status, state, epoch, due_at, sweep_at, lease_worker,
                   attempts, dispatch_count, crashes, started_at, finished_at, deadline_at, reason, \
                   error_code,
                   labels)
     WHERE runs.namespace_id = new.namespace_id
       AND runs.run_id = new.run_id
       AND runs.version = new.version - 1
 RETURNING 1
)
SELECT 1 / (count(*) = cardinality($2))::integer
  FROM done";

const PUT_LABELS: &str =
    "INSERT INTO kagzi.run_labels (namespace_id, run_id, name, value, created_at, finished_at)
 SELECT *
   FROM unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::bigint[], $6::bigint[])
     ON CONFLICT (namespace_id, run_id, name) DO UPDATE
    SET value = excluded.value,
        finished_at = excluded.finished_at";

const INSERT_WORKERS: &str =
    "INSERT INTO kagzi.workers (namespace_id, worker_id, task_queue, hostname, pid, version, workflow_types,
                  labels, max_concurrent, status, completed_total, failed_total, registered_at, heartbeat_at,
                  deregistered_at, row_version, handles_failures)
 SELECT *
   FROM unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::integer[], $6::text[], $7::text[],
               $8::text[], $9::bigint[], $10::smallint[], $11::bigint[], $12::bigint[], $13::bigint[],
               $14::bigint[], $15::bigint[], $16::bigint[], $17::boolean[])";

// As with runs: a worker that another server changed since it was read ends the transaction here and now.
const UPDATE_WORKERS: &str = "WITH done AS (
    UPDATE kagzi.workers
       SET task_queue = new.task_queue, hostname = new.hostname, pid = new.pid, version = new.version,
           workflow_types = new.workflow_types, labels = new.labels, max_concurrent = new.max_concurrent,
           status = new.status, completed_total = new.completed_total, failed_total = new.failed_total,
           registered_at = new.registered_at, heartbeat_at = new.heartbeat_at,
           deregistered_at = new.deregistered_at, row_version = new.row_version,
           handles_failures = new.handles_failures
      FROM unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::integer[], $6::text[], $7::text[],
                  $8::text[], $9::bigint[], $10::smallint[], $11::bigint[], $12::bigint[], $13::bigint[],
                  $14::bigint[], $15::bigint[], $16::bigint[], $17::boolean[], $18::bigint[])
           AS new (namespace_id, worker_id, task_queue, hostname, pid, version, workflow_types, labels,
                   max_concurrent, status, completed_total, failed_total, registered_at, heartbeat_at,
                   deregistered_at, row_version, handles_failures, from_version)
     WHERE workers.namespace_id = new.namespace_id
       AND workers.worker_id = new.worker_id
       AND workers.row_version = new.from_version
 RETURNING 1
)
SELECT 1 / (count(*) = cardinality($2))::integer
  FROM done";

// A worker that stands by at another server by now has its runs counted there: leasing to it here could
// exceed its limit. As above the division ends the transaction. The lock makes a server that takes the worker
// in at this very moment wait for our commit, and count what it brought.
const GUARD_WORKERS: &str = "WITH held AS (
    SELECT 1
      FROM unnest($1::text[], $2::uuid[]) AS given (namespace_id, worker_id)
      JOIN kagzi.workers
        ON workers.namespace_id = given.namespace_id AND workers.worker_id = given.worker_id
     WHERE workers.stands_by = $3
     ORDER BY workers.worker_id
       FOR SHARE OF workers
)
SELECT 1 / (count(*) = cardinality($2))::integer
  FROM held";

/// Every statement that writes; a test prepares each on a real database.
pub const STATEMENTS: &[(&str, &str)] = &[
    ("UNNAME_RUNS", UNNAME_RUNS),
    ("INSERT_RUNS", INSERT_RUNS),
    ("UPDATE_RUNS", UPDATE_RUNS),
    ("PUT_LABELS", PUT_LABELS),
    ("INSERT_WORKERS", INSERT_WORKERS),
    ("UPDATE_WORKERS", UPDATE_WORKERS),
    ("GUARD_WORKERS", GUARD_WORKERS),
];

pub(crate) type Sending<'s> = BoxFuture<'s, Result<(), Error>>;

/// The statements of a write set, in order. Each is sent when it is first polled; nothing waits for the one
/// before.
pub fn statements(session: &Session, server: Uuid, set: WriteSet) -> Vec<Sending<'_>> {
    let WriteSet {
        mut unnamed,
        mut inserted,
        mut updated,
        events,
        mut labels,
        workers,
        leased_to,
        schedules,
        namespaces,
        gates,
    } = set;
    let mut sending: Vec<Sending<'_>> = Vec::with_capacity(6);
    // In id order, as rows are always locked: two servers that meet wait for each other, and never crosswise.
    inserted.sort_unstable_by_key(|run| run.id);
    updated.sort_unstable_by_key(|run| run.id);
    labels.sort_unstable_by(|a, b| (a.run, &a.name).cmp(&(b.run, &b.name)));
    if !leased_to.is_empty() {
        sending.push(Box::pin(async move {
            let namespaces: Vec<&str> = leased_to.iter().map(|(namespace, _)| &**namespace).collect();
            let ids: Vec<Uuid> = leased_to.iter().map(|(_, worker)| worker.0).collect();
            session.query(GUARD_WORKERS, &[&namespaces, &ids, &server]).await.map(drop)
        }));
    }
    if !unnamed.is_empty() {
        unnamed.sort_unstable_by_key(|key| key.id);
        sending.push(Box::pin(async move {
            let namespaces: Vec<&str> = unnamed.iter().map(|key| &*key.namespace).collect();
            let ids: Vec<Uuid> = unnamed.iter().map(|key| key.id.0).collect();
            session.query(UNNAME_RUNS, &[&namespaces, &ids]).await.map(drop)
        }));
    }
    if !inserted.is_empty() {
        sending.push(Box::pin(async move { send(session, INSERT_RUNS, inserted_columns(&inserted)).await }));
    }
    if !updated.is_empty() {
        sending.push(Box::pin(async move { send(session, UPDATE_RUNS, updated_columns(&updated)).await }));
    }
    if !events.is_empty() {
        sending.push(Box::pin(async move {
            let packed = events::packed(&events);
            send(session, events::INSERT_EVENTS, events::columns(&packed)).await
        }));
    }
    if !labels.is_empty() {
        sending.push(Box::pin(async move { send(session, PUT_LABELS, label_columns(&labels)).await }));
    }
    sending.extend(worker_statements(session, workers));
    sending.extend(schedules::statements(session, schedules));
    sending.extend(controls::statements(session, namespaces, gates));
    sending
}

fn worker_statements(session: &Session, changes: Changes<Worker>) -> Vec<Sending<'_>> {
    let Changes { deleted, implicit, mut inserted, mut updated } = changes;
    debug_assert!(deleted.is_empty() && implicit.is_empty(), "a worker registers, and a sweep forgets it");
    inserted.sort_unstable_by_key(|worker| worker.id);
    updated.sort_unstable_by_key(|(_, worker)| worker.id);
    let mut sending: Vec<Sending<'_>> = Vec::new();
    if !inserted.is_empty() {
        sending.push(Box::pin(async move { send(session, INSERT_WORKERS, worker_columns(&inserted)).await }));
    }
    if !updated.is_empty() {
        sending.push(Box::pin(async move {
            let (from, rows): (Vec<u64>, Vec<Worker>) = updated.into_iter().unzip();
            let mut columns = worker_columns(&rows);
            columns.push(column(&from, |version| version.cast_signed()));
            send(session, UPDATE_WORKERS, columns).await
        }));
    }
    sending
}

/// One array per column.
pub(crate) type Columns<'r> = Vec<Box<dyn ToSql + Sync + Send + 'r>>;

pub(crate) async fn send(session: &Session, sql: &str, columns: Columns<'_>) -> Result<(), Error> {
    let bind: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|column| &**column as _).collect();
    session.query(sql, &bind).await.map(drop)
}

pub(crate) fn column<'r, R, T: ToSql + Sync + Send + 'r>(
    rows: &'r [R],
    value: impl Fn(&'r R) -> T,
) -> Box<dyn ToSql + Sync + Send + 'r> {
    Box::new(rows.iter().map(value).collect::<Vec<T>>())
}

fn updated_columns(runs: &[Run]) -> Columns<'_> {
    vec![
        column(runs, |run| &*run.namespace),
        column(runs, |run| run.id.0),
        column(runs, |run| run.version.cast_signed()),
        column(runs, |run| run.state.status() as i16),
        column(runs, |run| to_json(&run.state)),
        column(runs, |run| run.epoch.cast_signed()),
        column(runs, |run| run.due_at().map(|at| at.0)),
        column(runs, |run| run.sweep_at().map(|at| at.0)),
        column(runs, lease_worker),
        column(runs, |run| count(run.attempts)),
        column(runs, |run| count(run.dispatch_count)),
        column(runs, |run| count(run.crashes)),
        column(runs, |run| run.started_at.map(|at| at.0)),
        column(runs, |run| run.finished_at.map(|at| at.0)),
        // Changes when a run is reopened after its deadline.
        column(runs, |run| run.deadline_at.map(|at| at.0)),
        column(runs, |run| run.state.reason().map(Reason::name)),
        column(runs, |run| run.state.error_code().map(|code| text(code))),
        column(runs, |run| (!run.labels.is_empty()).then(|| to_json(&run.labels))),
    ]
}

fn inserted_columns(runs: &[Run]) -> Columns<'_> {
    let mut columns = updated_columns(runs);
    columns.extend([
        column(runs, |run| run.business_id.as_deref()),
        column(runs, |run| &*run.workflow_type),
        column(runs, |run| &*run.task_queue),
        column(runs, |run| run.created_at.0),
        column(runs, |run| to_json(&*run.options)),
        column(runs, |run| run.schedule().map(|id| &**id)),
    ]);
    columns
}

fn label_columns(labels: &[LabelRow]) -> Columns<'_> {
    vec![
        column(labels, |label| &*label.namespace),
        column(labels, |label| label.run.0),
        column(labels, |label| &*label.name),
        column(labels, |label| &*label.value),
        column(labels, |label| label.created_at.0),
        column(labels, |label| label.finished_at.map(|at| at.0)),
    ]
}

fn worker_columns(workers: &[Worker]) -> Columns<'_> {
    vec![
        column(workers, |worker| &*worker.registration.namespace),
        column(workers, |worker| worker.id.0),
        column(workers, |worker| &*worker.registration.task_queue),
        column(workers, |worker| text(&worker.registration.hostname)),
        column(workers, |worker| worker.registration.pid),
        column(workers, |worker| text(&worker.registration.version)),
        column(workers, |worker| to_json(&worker.registration.workflow_types)),
        column(workers, |worker| to_json(&worker.registration.labels)),
        column(workers, |worker| i64::from(worker.registration.max_concurrent)),
        column(workers, |worker| worker.status as i16),
        column(workers, |worker| worker.completed_total),
        column(workers, |worker| worker.failed_total),
        column(workers, |worker| worker.registered_at.0),
        column(workers, |worker| worker.heartbeat_at.0),
        column(workers, |worker| worker.deregistered_at.map(|at| at.0)),
        column(workers, |worker| worker.row_version.cast_signed()),
        column(workers, |worker| worker.registration.handles_failures()),
    ]
}

fn count(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Text that nobody checked. PostgreSQL refuses a NUL, and one worker's must not fail its neighbours' batch.
pub(crate) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "")) } else { Cow::Borrowed(text) }
}

pub(crate) fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("our own types are always valid JSON")
}
