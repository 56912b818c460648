//! Migrations only go forward, each in its own transaction, and are never edited after a release.

use kagzi_store::StoreError;

use crate::{error::from_postgres, session::Session};

const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_runs_events_workers.sql"),
    include_str!("../migrations/0002_workers_stand_by.sql"),
    include_str!("../migrations/0003_labels.sql"),
    include_str!("../migrations/0004_schedules.sql"),
    include_str!("../migrations/0005_namespaces_gates.sql"),
    include_str!("../migrations/0006_listing.sql"),
];

// Several servers may start at once: one migrates, the others wait here and then find nothing to do. Held by the
// transaction, not by the session, so that it works behind a pooler and never outlives a lost connection.
// The number is the word "kagzi" in ASCII.
const BEGIN: &str = "BEGIN;
SET LOCAL statement_timeout = '10min';
SELECT pg_advisory_xact_lock(461195672169);
-- From here on wait only briefly: a change that queues behind a long reader would hold up everybody behind it.
SET LOCAL lock_timeout = '5s';";

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

/// Brings the schema up to date. One written by a newer Kagzi is refused, never downgraded.
pub async fn migrate(session: &Session) -> Result<(), StoreError> {
    loop {
        let step = step(session).await;
        let end = if step.is_ok() { "COMMIT" } else { "ROLLBACK" };
        let ended = session.execute(end).await.map_err(from_postgres);
        if !step.and_then(|more| ended.map(|()| more))? {
            return Ok(());
        }
    }
}

/// Applies the next migration, if there is one; whatever was committed before an interruption stays.
async fn step(session: &Session) -> Result<bool, StoreError> {
    session.execute(BEGIN).await.map_err(from_postgres)?;
    let exists = session.query(EXISTS, &[]).await.map_err(from_postgres)?;
    if !exists[0].get::<_, bool>(0) {
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
    let Some(migration) = MIGRATIONS.get(have) else { return Ok(false) };
    session.execute(migration).await.map_err(from_postgres)?;
    let record = format!("INSERT INTO kagzi.migrations (number) VALUES ({})", have + 1);
    session.execute(&record).await.map_err(from_postgres)?;
    Ok(true)
}
