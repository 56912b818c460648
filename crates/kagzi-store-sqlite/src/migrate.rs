//! Migrations only go forward, each in its own transaction, and are never edited after a release.

use kagzi_store::StoreError;

use crate::db::Db;

const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_runs_events_workers.sql"),
    include_str!("../migrations/0002_labels.sql"),
    include_str!("../migrations/0003_schedules.sql"),
    include_str!("../migrations/0004_namespaces_gates.sql"),
    include_str!("../migrations/0005_listing.sql"),
    include_str!("../migrations/0006_scheduled_by_end.sql"),
    include_str!("../migrations/0007_failure_handlers.sql"),
];

/// The newest schema that this version can read.
pub fn known() -> u32 {
    MIGRATIONS.len() as u32
}

/// Brings the file up to date. A file written by a newer Kagzi is refused, never downgraded.
pub fn migrate(db: &Db) -> Result<(), StoreError> {
    let have = db.first("PRAGMA user_version", &[], |row| row.get::<u32>(0))?.unwrap_or(0) as usize;
    if have > MIGRATIONS.len() {
        return Err(StoreError::Unavailable(format!(
            "the database has schema {have}, this kagzi knows {}; use the newer kagzi that wrote it",
            MIGRATIONS.len()
        )));
    }
    for (number, migration) in MIGRATIONS.iter().enumerate().skip(have) {
        db.transaction(|| {
            db.batch(&db.schema(migration))?;
            db.batch(&format!("PRAGMA user_version = {}", number + 1))
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Db {
        Db::Sqlite(rusqlite::Connection::open_in_memory().unwrap())
    }

    #[test]
    fn a_newer_schema_is_refused_with_what_to_do() {
        let db = empty();
        db.batch("PRAGMA user_version = 999").unwrap();

        let error = migrate(&db).unwrap_err().to_string();

        assert!(error.contains("schema 999") && error.contains("newer kagzi"), "{error}");
    }

    #[test]
    fn migrating_twice_changes_nothing() {
        let db = empty();

        migrate(&db).unwrap();
        migrate(&db).unwrap();
    }
}
