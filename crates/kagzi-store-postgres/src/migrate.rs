//! Migrations only go forward, one at a time, and are never edited after a release. What was committed before
//! an interruption stays, and the next start goes on from there.

mod events;
mod index;

use std::time::Duration;

use kagzi_store::StoreError;
use tracing::{info, warn};

use crate::{
    error::{LOCK_TIMEOUT, from_postgres},
    session::Session,
};
use index::Index;

/// One step of the schema.
enum Migration {
    /// Quick whatever the tables hold: new tables, new columns, settings.
    Transaction(&'static str),
    /// Rows of a table that may be large, rewritten piece by piece, each in a transaction of its own.
    Events,
    /// An index on a table that may be large and in use: built beside its readers and writers.
    Index(Index),
}

const MIGRATIONS: &[Migration] = &[
    Migration::Transaction(include_str!("../migrations/0001_runs_events_workers.sql")),
    Migration::Transaction(include_str!("../migrations/0002_workers_stand_by.sql")),
    Migration::Transaction(include_str!("../migrations/0003_labels.sql")),
    Migration::Transaction(include_str!("../migrations/0004_schedules.sql")),
    Migration::Transaction(include_str!("../migrations/0005_namespaces_gates.sql")),
    Migration::Transaction(include_str!("../migrations/0006_listing.sql")),
    // Runs by creation, newest first. Type and queue never change, so they ride along: a filter by them walks
    // the index and touches no row that it does not show.
    Migration::Index(Index {
        name: "runs_listed",
        on: "kagzi.runs (namespace_id, created_at, run_id) INCLUDE (workflow_type, task_queue)",
    }),
    // Runs by their end: for listing, and for retention, which deletes the oldest.
    Migration::Index(Index {
        name: "runs_finished",
        on: "kagzi.runs (namespace_id, finished_at, run_id) WHERE finished_at IS NOT NULL",
    }),
    // Runs that wait, are paused or ended badly. Not the running (2), who are as many as workers have slots
    // and are found by runs_leased, and not the completed (4), who are most: a run that starts at once and
    // completes is never in here.
    Migration::Index(Index {
        name: "runs_by_status",
        on: "kagzi.runs (namespace_id, status, created_at, run_id) WHERE status NOT IN (2, 4)",
    }),
    Migration::Index(Index {
        name: "runs_ended_badly",
        on: "kagzi.runs (namespace_id, status, finished_at, run_id) WHERE finished_at IS NOT NULL AND \
             status <> 4",
    }),
    // Runs that failed or wait to retry: nothing while all is well.
    Migration::Index(Index {
        name: "runs_error_code",
        on: "kagzi.runs (namespace_id, error_code, created_at, run_id) WHERE error_code IS NOT NULL",
    }),
    Migration::Index(Index {
        name: "runs_error_code_finished",
        on: "kagzi.runs (namespace_id, error_code, finished_at, run_id)
             WHERE error_code IS NOT NULL AND finished_at IS NOT NULL",
    }),
    // Runs of one schedule by their end. One that fires every second has millions: sorting them for a page
    // takes seconds.
    Migration::Index(Index {
        name: "runs_scheduled_finished",
        on: "kagzi.runs (namespace_id, schedule_id, finished_at, run_id)
             WHERE schedule_id IS NOT NULL AND finished_at IS NOT NULL",
    }),
    Migration::Transaction(include_str!("../migrations/0007_failure_handlers.sql")),
    // Workers that registered the failure handler of their namespace: few, among all that were online in a
    // week.
    Migration::Index(Index {
        name: "workers_handling",
        on: "kagzi.workers (namespace_id, registered_at, worker_id) WHERE handles_failures",
    }),
    Migration::Transaction(include_str!("../migrations/0008_events_by_commit.sql")),
    Migration::Events,
    Migration::Transaction(include_str!("../migrations/0009_levels.sql")),
    Migration::Transaction(include_str!("../migrations/0010_worker_versions.sql")),
    Migration::Transaction(include_str!("../migrations/0011_generations.sql")),
    Migration::Transaction(include_str!("../migrations/0012_nouns.sql")),
    Migration::Transaction(include_str!("../migrations/0013_people.sql")),
    Migration::Transaction(include_str!("../migrations/0014_events_published.sql")),
];

// From here on wait only briefly: a change that queues behind a long reader would hold up everybody behind
// it.
const BEGIN: &str = "BEGIN;
SET LOCAL statement_timeout = '10min';
SET LOCAL lock_timeout = '5s';";

// Several servers may start at once: one migrates, the others come back until they find nothing to do. Nobody
// waits inside the database: an index that is built beside its writers waits for everybody who began before
// it, and so for those who would wait for it. The transaction holds the lock, so that it works behind a
// pooler and never outlives a lost connection. The number is the word "kagzi" in ASCII.
const TRY_LOCK: &str = "SELECT pg_try_advisory_xact_lock(461195672169)";

const EXISTS: &str = "SELECT to_regclass('kagzi.migrations') IS NOT NULL";

// Without IF NOT EXISTS on the schema: it may have been made for us by an owner with more rights than ours.
const CREATE: &str = "DO $$ BEGIN
    IF to_regnamespace('kagzi') IS NULL THEN
        CREATE SCHEMA kagzi;
    END IF;
END $$;
CREATE TABLE kagzi.migrations (
    number INTEGER NOT NULL PRIMARY KEY
);";

const LATEST: &str = "SELECT COALESCE(max(number), 0) FROM kagzi.migrations";

/// How long to leave the database alone before asking again.
const PAUSE: Duration = Duration::from_millis(100);
/// After so many pauses the operator is told why nothing happens: half a minute.
const BUSY_ROUNDS: u32 = 300;
/// How often a migration is tried that somebody's long transaction keeps from its lock.
const TRIES_MAX: u32 = 6;

/// What came of one look.
enum Step {
    Applied,
    /// Another server is at it.
    Busy,
    /// This index is next, and too large for a transaction.
    Beside(usize, &'static Index),
    UpToDate,
}

/// Brings the schema up to date. One written by a newer Kagzi is refused, never downgraded.
pub async fn migrate(session: &Session) -> Result<(), StoreError> {
    let (mut kept_waiting, mut rounds) = (0, 0);
    loop {
        let step = match attempt(session).await {
            Err(StoreError::Unavailable(why)) if why.contains(LOCK_TIMEOUT) && kept_waiting < TRIES_MAX => {
                kept_waiting += 1;
                warn!(why, "a migration waits for somebody's long transaction and tries again");
                Step::Busy
            }
            step => step?,
        };
        match step {
            Step::Applied => kept_waiting = 0,
            Step::Busy => {
                rounds += 1;
                if rounds % BUSY_ROUNDS == 0 {
                    warn!("another server migrates the database, waiting for it");
                }
                tokio::time::sleep(PAUSE).await;
            }
            Step::Beside(number, index) => {
                info!(index = index.name, "building an index beside its readers and writers");
                if !index.build_beside(session, number).await? {
                    tokio::time::sleep(PAUSE).await;
                }
            }
            Step::UpToDate => return Ok(()),
        }
    }
}

async fn attempt(session: &Session) -> Result<Step, StoreError> {
    let step = step(session).await;
    let applied = matches!(step, Ok(Step::Applied));
    let ended = session.execute(if applied { "COMMIT" } else { "ROLLBACK" }).await.map_err(from_postgres);
    step.and_then(|step| ended.map(|()| step))
}

/// Applies the next migration, if there is one and a transaction is the place for it.
async fn step(session: &Session) -> Result<Step, StoreError> {
    session.execute(BEGIN).await.map_err(from_postgres)?;
    if !holds(session, TRY_LOCK).await? {
        return Ok(Step::Busy);
    }
    if !holds(session, EXISTS).await? {
        session.execute(CREATE).await.map_err(from_postgres)?;
    }
    let latest = session.query(LATEST, &[]).await.map_err(from_postgres)?;
    let have = usize::try_from(latest[0].get::<_, i32>(0)).unwrap_or(0);
    if have > MIGRATIONS.len() {
        return Err(StoreError::Unavailable(format!(
            "the database has schema {have}, this kagzi knows {}; use the newer kagzi that wrote it",
            MIGRATIONS.len()
        )));
    }
    let number = have + 1;
    match MIGRATIONS.get(have) {
        None => return Ok(Step::UpToDate),
        Some(Migration::Transaction(sql)) => session.execute(sql).await.map_err(from_postgres)?,
        Some(Migration::Events) if events::piece(session).await? => return Ok(Step::Applied),
        Some(Migration::Events) => {}
        Some(Migration::Index(index)) if index.quick(session).await? => index.build(session).await?,
        Some(Migration::Index(index)) => return Ok(Step::Beside(number, index)),
    }
    session.execute(&record(number)).await.map_err(from_postgres)?;
    Ok(Step::Applied)
}

/// Notes that a migration is done.
fn record(number: usize) -> String {
    format!("INSERT INTO kagzi.migrations (number) VALUES ({number})")
}

/// What a question without values answers.
async fn holds(session: &Session, sql: &str) -> Result<bool, StoreError> {
    let rows = session.query(sql, &[]).await.map_err(from_postgres)?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_transaction_builds_an_index_on_a_table_that_may_be_large() {
        let transactions = MIGRATIONS.iter().filter_map(|migration| match migration {
            Migration::Transaction(sql) => Some(*sql),
            Migration::Events | Migration::Index(_) => None,
        });

        // The first five were there before any database with data.
        for sql in transactions.skip(5) {
            let made: Vec<&str> =
                sql.split(';').filter(|statement| statement.contains("CREATE TABLE")).collect();
            for statement in sql.split(';').filter(|statement| statement.contains("CREATE INDEX")) {
                let table = statement.split_whitespace().skip_while(|word| *word != "ON").nth(1).unwrap();
                assert!(made.iter().any(|make| make.contains(table)), "not beside its writers: {statement}");
            }
        }
    }
}
