//! SQLite: opening connections, with every setting explained, and running statements on them.

mod checkpoint;

use std::{ops::ControlFlow, path::Path, time::Duration};

use kagzi_store::StoreError;
use rusqlite::{
    CachedStatement, Connection, ErrorCode, OpenFlags, ToSql, ffi, params_from_iter,
    types::{ToSqlOutput, ValueRef},
};

pub use checkpoint::finish as move_log;

use crate::{
    db::Db,
    value::{Columns, Row, Value, unreadable},
};

/// More than we have, so that none is prepared twice.
const STATEMENTS_KEPT: usize = 256;

/// The one connection that writes.
pub fn writer(path: &Path) -> Result<Db, StoreError> {
    let mut connection = Connection::open(path).map_err(from_sqlite)?;
    let settings = "
        -- Half the pages of the standard size: half the frames to write, and half the slots that SQLite \
        looks through when
        -- a commit has moved pages. 12 % less processor time of the writer. Only a new file takes it.
        PRAGMA page_size = 8192;
        PRAGMA journal_mode = WAL;
        -- FULL: the WAL is fsynced at every commit. NORMAL would lose acknowledged work in a power cut.
        PRAGMA synchronous = FULL;
        -- Only macOS knows a difference: there an fsync alone stops at the drive's cache. Elsewhere it \
        changes nothing.
        PRAGMA fullfsync = ON;
        PRAGMA checkpoint_fullfsync = ON;
        -- A page whose cells lie about their size is an error, not an answer with rows missing.
        PRAGMA cell_size_check = ON;
        PRAGMA foreign_keys = OFF;
        -- 16 MiB of pages: index leaves of the hot set stay in memory.
        PRAGMA cache_size = -16384;
        -- checkpoint.rs does it.
        PRAGMA wal_autocheckpoint = 0;
        PRAGMA journal_size_limit = 67108864;
        PRAGMA temp_store = MEMORY;
    ";
    connection.execute_batch(settings).map_err(from_sqlite)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    checkpoint::beside(&mut connection, path)?;
    Ok(Db::Sqlite(connection))
}

/// A connection that only reads.
pub fn reader(path: &Path) -> Result<Db, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(from_sqlite)?;
    connection
        .execute_batch(
            "PRAGMA query_only = ON; PRAGMA cell_size_check = ON; PRAGMA cache_size = -4096; \
                        PRAGMA temp_store = MEMORY;",
        )
        .map_err(from_sqlite)?;
    connection.busy_timeout(Duration::from_secs(5)).map_err(from_sqlite)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_KEPT);
    Ok(Db::Sqlite(connection))
}

/// Ends whatever the connection does as soon as the question is answered with yes.
pub fn interrupt_when(
    db: &mut Db,
    every: std::ffi::c_int,
    end: impl FnMut() -> bool + Send + 'static,
) -> Result<(), StoreError> {
    match db {
        Db::Sqlite(connection) => connection.progress_handler(every, Some(end)).map_err(from_sqlite),
        #[cfg(feature = "turso")]
        Db::Turso(_) => Ok(()),
    }
}

/// Changes rows, and says how many.
pub fn execute(connection: &Connection, sql: &str, bind: &[Value<'_>]) -> Result<usize, StoreError> {
    execute_prepared(&mut prepare(connection, sql)?, bind)
}

pub fn prepare<'c>(connection: &'c Connection, sql: &str) -> Result<CachedStatement<'c>, StoreError> {
    connection.prepare_cached(sql).map_err(from_sqlite)
}

pub fn execute_prepared(
    statement: &mut CachedStatement<'_>,
    bind: &[Value<'_>],
) -> Result<usize, StoreError> {
    statement.execute(params_from_iter(bind)).map_err(from_sqlite)
}

/// Shows rows until told to stop.
pub fn rows(
    connection: &Connection,
    sql: &str,
    bind: &[Value<'_>],
    mut see: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>, StoreError>,
) -> Result<(), StoreError> {
    let mut statement = prepare(connection, sql)?;
    let mut rows = statement.query(params_from_iter(bind)).map_err(from_sqlite)?;
    while let Some(found) = rows.next().map_err(from_sqlite)? {
        if see(&Row::new(found))?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Several statements without values.
pub fn batch(connection: &Connection, sql: &str) -> Result<(), StoreError> {
    connection.execute_batch(sql).map_err(from_sqlite)
}

impl Columns for rusqlite::Row<'_> {
    fn value(&self, at: usize) -> Result<Value<'_>, StoreError> {
        match self.get_ref(at).map_err(from_sqlite)? {
            ValueRef::Null => Ok(Value::Null),
            ValueRef::Integer(number) => Ok(Value::Integer(number)),
            ValueRef::Text(bytes) => {
                str::from_utf8(bytes).map(Value::Text).map_err(|error| unreadable(at, error))
            }
            ValueRef::Blob(bytes) => Ok(Value::Blob(bytes)),
            ValueRef::Real(_) => Err(unreadable(at, "a fraction, which no table of ours holds")),
        }
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

/// The damage, and what to do about it.
pub fn damaged(what: &str) -> StoreError {
    StoreError::Damaged(format!(
        "the database file is damaged ({what}): check it with `kagzi verify FILE`, stop the server and put \
         a backup \
         back with `kagzi restore BACKUP --store sqlite:FILE --replace`"
    ))
}

/// A key that exists already, and no other constraint.
fn is_duplicate(error: &rusqlite::Error) -> bool {
    let duplicates = [ffi::SQLITE_CONSTRAINT_PRIMARYKEY, ffi::SQLITE_CONSTRAINT_UNIQUE];
    error.sqlite_error().is_some_and(|error| duplicates.contains(&error.extended_code))
}

/// Sorts an error by what the caller can do about it.
fn from_sqlite(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full(format!("{error}; free some space, nothing was lost")),
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::OperationInterrupted
            | ErrorCode::ReadOnly,
        ) => StoreError::Unavailable(error.to_string()),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => damaged(&error.to_string()),
        Some(ErrorCode::ConstraintViolation) if is_duplicate(&error) => {
            StoreError::Duplicate(error.to_string())
        }
        Some(_) => StoreError::Bug(error.to_string()),
        None => StoreError::Corrupt(error.to_string()),
    }
}
