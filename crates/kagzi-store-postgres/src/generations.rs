//! Runs that continue in place: where their living generation begins, and deleting what lies before.

use kagzi_store::{Continued, OLD_ROWS_MAX, StoreError};
use uuid::Uuid;

use crate::{
    backend::PostgresBackend,
    row,
    session::Session,
    write::{Sending, column, send},
};

const BEGIN_GENERATIONS: &str = "UPDATE kagzi.runs
    SET generation = new.generation, first_seq = new.first_seq
   FROM unnest($1::text[], $2::uuid[], $3::bigint[], $4::bigint[])
        AS new (namespace_id, run_id, generation, first_seq)
  WHERE runs.namespace_id = new.namespace_id
    AND runs.run_id = new.run_id";

const NOTE_OLD: &str = "INSERT INTO kagzi.old_generations (namespace_id, run_id, below, kept)
 SELECT namespace_id, run_id, below, kept::bigint[]
   FROM unnest($1::text[], $2::uuid[], $3::bigint[], $4::text[])
        AS new (namespace_id, run_id, below, kept)
     ON CONFLICT (namespace_id, run_id) DO UPDATE SET below = excluded.below, kept = excluded.kept";

/// The rows that are still to go of those in `old`.
macro_rules! old_rows {
    ($columns:literal) => {
        concat!(
            "SELECT ",
            $columns,
            "
               FROM kagzi.events
              WHERE events.namespace_id = old.namespace_id
                AND events.run_id = old.run_id
                AND events.first_seq > 1
                AND events.first_seq < old.below
                AND NOT EXISTS (SELECT 1
                                  FROM unnest(old.kept) AS kept (seq)
                                 WHERE kept.seq >= events.first_seq
                                   AND kept.seq < events.first_seq + octet_length(events.kinds))"
        )
    };
}

/// Deletes rows of the runs that `$which` finds, and forgets those that have no more.
macro_rules! purge {
    ($which:literal) => {
        concat!(
            "WITH old AS (
    SELECT namespace_id, run_id, below, kept
      FROM kagzi.old_generations",
            $which,
            "
       FOR UPDATE SKIP LOCKED
), gone AS (
    SELECT events.namespace_id, events.run_id, events.first_seq
      FROM old
     CROSS JOIN LATERAL (",
            old_rows!("events.namespace_id, events.run_id, events.first_seq"),
            "
                          ORDER BY first_seq
                          LIMIT $1) AS events
     LIMIT $1
), purged AS (
    DELETE FROM kagzi.events
     USING gone
     WHERE events.namespace_id = gone.namespace_id
       AND events.run_id = gone.run_id
       AND events.first_seq = gone.first_seq
 RETURNING 1
)
SELECT count(*) FROM purged"
        )
    };
}

const PURGE_SOME: &str = purge!("\n     ORDER BY namespace_id, run_id\n     LIMIT 100");

const PURGE_THESE: &str =
    purge!("\n     WHERE (namespace_id, run_id) IN (SELECT * FROM unnest($2::text[], $3::uuid[]))");

const FORGET_OLD: &str = concat!(
    "DELETE FROM kagzi.old_generations AS old
 WHERE (namespace_id, run_id) IN (SELECT namespace_id, run_id
                                    FROM kagzi.old_generations
                                   ORDER BY namespace_id, run_id
                                   LIMIT 100
                                     FOR UPDATE SKIP LOCKED)
   AND NOT EXISTS (",
    old_rows!("1"),
    ")"
);

const FORGET_THESE: &str = concat!(
    "DELETE FROM kagzi.old_generations AS old
 WHERE (namespace_id, run_id) IN (SELECT * FROM unnest($1::text[], $2::uuid[]))
   AND NOT EXISTS (",
    old_rows!("1"),
    ")"
);

/// Every statement about generations; a test prepares each on a real database.
pub const STATEMENTS: &[(&str, &str)] = &[
    ("BEGIN_GENERATIONS", BEGIN_GENERATIONS),
    ("NOTE_OLD", NOTE_OLD),
    ("PURGE_SOME", PURGE_SOME),
    ("PURGE_THESE", PURGE_THESE),
    ("FORGET_OLD", FORGET_OLD),
    ("FORGET_THESE", FORGET_THESE),
];

/// The statements that write where generations begin, and delete of what lies before as much as a commit may.
pub fn statements(session: &Session, mut continued: Vec<Continued>) -> Vec<Sending<'_>> {
    if continued.is_empty() {
        return Vec::new();
    }
    // In id order, as rows are always locked.
    continued.sort_unstable_by_key(|each| each.run.id);
    let continued = std::sync::Arc::new(continued);
    let (begun, noted, purged, forgotten) =
        (continued.clone(), continued.clone(), continued.clone(), continued);
    vec![
        Box::pin(async move {
            let columns = vec![
                column(&begun, |each| &*each.run.namespace),
                column(&begun, |each| each.run.id.0),
                column(&begun, |each| i64::from(each.generation)),
                column(&begun, |each| each.first_seq.cast_signed()),
            ];
            send(session, BEGIN_GENERATIONS, columns).await
        }),
        Box::pin(async move {
            let columns = vec![
                column(&noted, |each| &*each.run.namespace),
                column(&noted, |each| each.run.id.0),
                column(&noted, |each| each.below.cast_signed()),
                column(&noted, |each| array(&each.kept)),
            ];
            send(session, NOTE_OLD, columns).await
        }),
        Box::pin(async move {
            let (namespaces, ids) = keys(&purged);
            session.query(PURGE_THESE, &[&(OLD_ROWS_MAX as i64), &namespaces, &ids]).await.map(drop)
        }),
        Box::pin(async move {
            let (namespaces, ids) = keys(&forgotten);
            session.query(FORGET_THESE, &[&namespaces, &ids]).await.map(drop)
        }),
    ]
}

fn keys(continued: &[Continued]) -> (Vec<&str>, Vec<Uuid>) {
    continued.iter().map(|each| (&*each.run.namespace, each.run.id.0)).unzip()
}

/// Numbers as PostgreSQL writes an array of them: there are no arrays of arrays of different lengths.
fn array(numbers: &[u64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    format!("{{{}}}", numbers.join(","))
}

/// Deletes up to `limit` rows of old generations, and says how many.
pub async fn purge(backend: &mut PostgresBackend, limit: usize) -> Result<usize, StoreError> {
    let rows = backend.query(PURGE_SOME, &[&(limit as i64)]).await?;
    backend.query(FORGET_OLD, &[]).await?;
    Ok(usize::try_from(row::get::<i64>(&rows[0], 0)?).unwrap_or(0))
}
