//! Migrations only go forward, each in its own transaction, and are never edited after a release.

use kagzi_store::StoreError;
use rusqlite::Connection;

use crate::error::from_sqlite;

const MIGRATIONS: &[&str] = &[include_str!("../migrations/0001_runs_events_workers.sql")];

/// Brings the file up to date. A file written by a newer Kagzi is refused, never downgraded.
pub fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    let have: usize = connection
        .query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))
        .map_err(from_sqlite)? as usize;
    if have > MIGRATIONS.len() {
        return Err(StoreError::Unavailable(format!(
            "the database has schema {have}, this kagzi knows {}; use the newer kagzi that wrote it",
            MIGRATIONS.len()
        )));
    }
    for (number, migration) in MIGRATIONS.iter().enumerate().skip(have) {
        let transaction = connection.transaction().map_err(from_sqlite)?;
        transaction.execute_batch(migration).map_err(from_sqlite)?;
        transaction.pragma_update(None, "user_version", (number + 1) as i64).map_err(from_sqlite)?;
        transaction.commit().map_err(from_sqlite)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_schema_is_refused_with_what_to_do() {
        let mut connection = Connection::open_in_memory().unwrap();
        connection.pragma_update(None, "user_version", 999).unwrap();

        let error = migrate(&mut connection).unwrap_err().to_string();

        assert!(error.contains("schema 999") && error.contains("newer kagzi"), "{error}");
    }

    #[test]
    fn migrating_twice_changes_nothing() {
        let mut connection = Connection::open_in_memory().unwrap();

        migrate(&mut connection).unwrap();
        migrate(&mut connection).unwrap();
    }
}
