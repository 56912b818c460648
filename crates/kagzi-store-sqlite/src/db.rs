//! The seam between our statements and the engine that runs them. Everything above it is written once.
//!
//! ```text
//! const NEXT: &str = "SELECT due_at FROM runs WHERE run_id = ?1";
//! let next: Option<Timestamp> = db.first(NEXT, bind![id], |row| row.get(0))?;
//! let all = db.all(SQL, bind![namespace, limit], row::run)?;
//! let changed = db.execute(UPDATE, bind![id, json(&state)])?;
//! let mut insert = db.statement(INSERT)?;
//! rows.iter().try_for_each(|row| insert.execute(bind![row.id, row.at]).map(drop))?;
//! db.transaction(|| { .. })?;
//! ```
//!
//! An enum and not a type parameter: it is decided once per statement, and callers stay plain functions of
//! `&Db`. In a build with one engine there is nothing to decide.

use std::{borrow::Cow, ops::ControlFlow};

use kagzi_store::StoreError;

#[cfg(feature = "turso")]
use crate::turso;
use crate::{
    sqlite,
    value::{Row, Value},
};

/// A connection. Statements are prepared once and kept.
pub enum Db {
    Sqlite(rusqlite::Connection),
    #[cfg(feature = "turso")]
    Turso(::turso::Connection),
}

/// A prepared statement in use.
pub enum Statement<'c> {
    Sqlite(rusqlite::CachedStatement<'c>),
    #[cfg(feature = "turso")]
    Turso(&'c ::turso::Connection, &'c str),
}

impl Statement<'_> {
    /// Changes rows, and says how many.
    pub fn execute(&mut self, bind: &[Value<'_>]) -> Result<usize, StoreError> {
        match self {
            Statement::Sqlite(statement) => sqlite::execute_prepared(statement, bind),
            #[cfg(feature = "turso")]
            Statement::Turso(connection, sql) => turso::execute(connection, sql, bind),
        }
    }
}

impl Db {
    /// Changes rows, and says how many. A statement that also answers rows (`RETURNING`) goes to [`Db::all`].
    pub fn execute(&self, sql: &str, bind: &[Value<'_>]) -> Result<usize, StoreError> {
        match self {
            Db::Sqlite(connection) => sqlite::execute(connection, sql, bind),
            #[cfg(feature = "turso")]
            Db::Turso(connection) => turso::execute(connection, sql, bind),
        }
    }

    /// A statement that is executed many times in a row, looked up once.
    pub fn statement<'c>(&'c self, sql: &'c str) -> Result<Statement<'c>, StoreError> {
        Ok(match self {
            Db::Sqlite(connection) => Statement::Sqlite(sqlite::prepare(connection, sql)?),
            #[cfg(feature = "turso")]
            Db::Turso(connection) => Statement::Turso(connection, sql),
        })
    }

    /// The first row, if there is one.
    pub fn first<T>(
        &self,
        sql: &str,
        bind: &[Value<'_>],
        mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let mut first = None;
        self.rows(sql, bind, |row| {
            first = Some(read(row)?);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(first)
    }

    /// All rows, in order. The statement has a limit, or what it finds is small.
    pub fn all<T>(
        &self,
        sql: &str,
        bind: &[Value<'_>],
        mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut all = Vec::new();
        self.each(sql, bind, |row| {
            all.push(read(row)?);
            Ok(())
        })?;
        Ok(all)
    }

    /// Shows all rows, in order, without keeping them.
    pub fn each(
        &self,
        sql: &str,
        bind: &[Value<'_>],
        mut see: impl FnMut(&Row<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.rows(sql, bind, |row| see(row).map(ControlFlow::Continue))
    }

    /// Several statements without values, for migrations and settings.
    pub fn batch(&self, sql: &str) -> Result<(), StoreError> {
        match self {
            Db::Sqlite(connection) => sqlite::batch(connection, sql),
            #[cfg(feature = "turso")]
            Db::Turso(connection) => turso::batch(connection, sql),
        }
    }

    /// Leaves everything in the one file, before the connection is closed.
    pub fn move_log(&mut self) -> Result<(), StoreError> {
        match self {
            Db::Sqlite(connection) => sqlite::move_log(connection),
            #[cfg(feature = "turso")]
            Db::Turso(_) => self.each("PRAGMA wal_checkpoint(TRUNCATE)", &[], |_| Ok(())),
        }
    }

    /// A migration in the words of the engine.
    pub fn schema<'m>(&self, migration: &'m str) -> Cow<'m, str> {
        match self {
            Db::Sqlite(_) => Cow::Borrowed(migration),
            #[cfg(feature = "turso")]
            Db::Turso(_) => turso::schema(migration),
        }
    }

    /// All or nothing for writes, one snapshot for reads.
    pub fn transaction<T>(&self, work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.begin()?;
        let done = work().and_then(|value| self.commit().map(|()| value));
        if done.is_err() {
            self.rollback();
        }
        done
    }

    pub fn begin(&self) -> Result<(), StoreError> {
        self.execute("BEGIN", &[]).map(drop)
    }

    pub fn commit(&self) -> Result<(), StoreError> {
        self.execute("COMMIT", &[]).map(drop)
    }

    /// Fails only when the engine has rolled back by itself, as SQLite does when the disk is full.
    pub fn rollback(&self) {
        if let Err(error) = self.execute("ROLLBACK", &[]) {
            tracing::debug!(%error, "nothing to roll back");
        }
    }

    /// Shows rows until told to stop.
    pub fn rows(
        &self,
        sql: &str,
        bind: &[Value<'_>],
        see: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        match self {
            Db::Sqlite(connection) => sqlite::rows(connection, sql, bind, see),
            #[cfg(feature = "turso")]
            Db::Turso(connection) => turso::rows(connection, sql, bind, see),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::bind;

    /// The same claims on every engine of this build.
    fn on_every_engine(claim: impl Fn(&Db)) {
        let folder = tempfile::tempdir().unwrap();
        let engines = [
            sqlite::writer(&folder.path().join("a.sqlite")).unwrap(),
            #[cfg(feature = "turso")]
            turso::writer(&turso::open(&folder.path().join("a.turso")).unwrap()).unwrap(),
        ];
        for db in engines {
            db.batch("CREATE TABLE numbers (n INTEGER NOT NULL PRIMARY KEY) STRICT").unwrap();
            db.batch("INSERT INTO numbers VALUES (1), (2), (3)").unwrap();
            claim(&db);
        }
    }

    fn all(db: &Db) -> Vec<i64> {
        db.all("SELECT n FROM numbers ORDER BY n", &[], |row| row.get(0)).unwrap()
    }

    #[test]
    fn rows_come_in_order_and_the_first_one_alone() {
        on_every_engine(|db| {
            let above = "SELECT n FROM numbers WHERE n > ?1 ORDER BY n";

            assert_eq!(db.first(above, bind![1i64], |row| row.get::<i64>(0)), Ok(Some(2)));
            assert_eq!(db.first(above, bind![3i64], |row| row.get::<i64>(0)), Ok(None));
            assert_eq!(all(db), [1, 2, 3]);
        });
    }

    #[test]
    fn a_failed_transaction_leaves_nothing_and_the_next_one_works() {
        on_every_engine(|db| {
            let insert = "INSERT INTO numbers VALUES (?1)";

            let failed = db.transaction(|| {
                db.execute(insert, bind![4i64])?;
                db.execute(insert, bind![1i64])
            });
            assert!(matches!(failed, Err(StoreError::Duplicate(_))), "{failed:?}");
            assert_eq!(all(db), [1, 2, 3]);

            assert_eq!(db.transaction(|| db.execute(insert, bind![5i64])), Ok(1));
            assert_eq!(all(db), [1, 2, 3, 5]);
        });
    }

    #[test]
    fn the_number_of_changed_rows_is_told() {
        on_every_engine(|db| {
            let update = "UPDATE numbers SET n = n + 10 WHERE n >= ?1";

            assert_eq!(db.execute(update, bind![2i64]), Ok(2));
            assert_eq!(db.execute(update, bind![99i64]), Ok(0));
            assert_eq!(db.execute(update, bind![None::<i64>]), Ok(0));
        });
    }

    #[test]
    fn reading_halfway_leaves_the_transaction_open() {
        on_every_engine(|db| {
            let seen = db.transaction(|| {
                db.execute("INSERT INTO numbers VALUES (4)", &[])?;
                let first: Option<i64> =
                    db.first("SELECT n FROM numbers ORDER BY n", &[], |row| row.get(0))?;
                db.execute("INSERT INTO numbers VALUES (5)", &[])?;
                Ok(first)
            });

            assert_eq!(seen, Ok(Some(1)));
            assert_eq!(all(db), [1, 2, 3, 4, 5]);
        });
    }

    #[test]
    fn a_row_that_cannot_be_read_stops_the_reading_and_harms_nothing_else() {
        on_every_engine(|db| {
            let failed = db.all("SELECT n FROM numbers", &[], |row| row.get::<String>(0));

            assert!(matches!(failed, Err(StoreError::Corrupt(_))), "{failed:?}");
            assert_eq!(all(db), [1, 2, 3]);
        });
    }
}
