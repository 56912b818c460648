//! The seam between our statements and the engine that runs them. Everything above it is written once.
//!
//! ```text
//! const NEXT: &str = "SELECT due_at FROM runs WHERE run_id = ?1";
//! let next: Option<Timestamp> = db.first(NEXT, bind![id], |row| row.get(0))?;
//! let all = db.all(SQL, bind![namespace, limit], row::run)?;
//! let changed = db.execute(UPDATE, bind![id, json(&state)])?;
//! db.transaction(|| { .. })?;
//! ```
//!
//! An enum and not a type parameter: it is decided once per statement, and callers stay plain functions of
//! `&Db`. In a build with one engine there is nothing to decide.

use std::ops::ControlFlow;

use kagzi_store::StoreError;

use crate::{
    sqlite,
    value::{Row, Value},
};

/// A connection. Statements are prepared once and kept.
pub enum Db {
    Sqlite(rusqlite::Connection),
}

impl Db {
    /// Changes rows, and says how many. A statement that also answers rows (`RETURNING`) goes to [`Db::all`].
    pub fn execute(&self, sql: &str, bind: &[Value<'_>]) -> Result<usize, StoreError> {
        match self {
            Db::Sqlite(connection) => sqlite::execute(connection, sql, bind),
        }
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

    fn rows(
        &self,
        sql: &str,
        bind: &[Value<'_>],
        see: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>, StoreError>,
    ) -> Result<(), StoreError> {
        match self {
            Db::Sqlite(connection) => sqlite::rows(connection, sql, bind, see),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::bind;

    fn numbers() -> Db {
        let db = Db::Sqlite(rusqlite::Connection::open_in_memory().unwrap());
        db.batch("CREATE TABLE numbers (n INTEGER NOT NULL PRIMARY KEY) STRICT; INSERT INTO numbers VALUES (1), (2), (3)")
            .unwrap();
        db
    }

    fn all(db: &Db) -> Vec<i64> {
        db.all("SELECT n FROM numbers ORDER BY n", &[], |row| row.get(0)).unwrap()
    }

    #[test]
    fn rows_come_in_order_and_the_first_one_alone() {
        let db = numbers();
        let above = "SELECT n FROM numbers WHERE n > ?1 ORDER BY n";

        assert_eq!(db.first(above, bind![1i64], |row| row.get::<i64>(0)), Ok(Some(2)));
        assert_eq!(db.first(above, bind![3i64], |row| row.get::<i64>(0)), Ok(None));
        assert_eq!(all(&db), [1, 2, 3]);
    }

    #[test]
    fn a_failed_transaction_leaves_nothing_and_the_next_one_works() {
        let db = numbers();
        let insert = "INSERT INTO numbers VALUES (?1)";

        let failed = db.transaction(|| {
            db.execute(insert, bind![4i64])?;
            db.execute(insert, bind![1i64])
        });
        assert!(matches!(failed, Err(StoreError::Bug(_))), "{failed:?}");
        assert_eq!(all(&db), [1, 2, 3]);

        assert_eq!(db.transaction(|| db.execute(insert, bind![5i64])), Ok(1));
        assert_eq!(all(&db), [1, 2, 3, 5]);
    }
}
