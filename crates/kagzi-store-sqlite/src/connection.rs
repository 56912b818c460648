//! Opening connections, with every setting explained.

use std::path::Path;

use kagzi_store::StoreError;
use rusqlite::{Connection, OpenFlags};

use crate::error::from_sqlite;

/// The one connection that writes.
pub fn writer(path: &Path) -> Result<Connection, StoreError> {
    let connection = Connection::open(path).map_err(from_sqlite)?;
    let settings = "
        PRAGMA journal_mode = WAL;
        -- FULL: the WAL is fsynced at every commit. NORMAL would lose acknowledged work in a power cut.
        PRAGMA synchronous = FULL;
        PRAGMA foreign_keys = OFF;
        -- 32 MiB of pages: index leaves of the hot set stay in memory.
        PRAGMA cache_size = -32768;
        -- Checkpoint about every 16 MiB of WAL instead of 4: fewer, longer checkpoints measured faster.
        PRAGMA wal_autocheckpoint = 4096;
        PRAGMA journal_size_limit = 67108864;
        PRAGMA temp_store = MEMORY;
    ";
    connection.execute_batch(settings).map_err(from_sqlite)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// A connection that only reads.
pub fn reader(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(from_sqlite)?;
    connection
        .execute_batch("PRAGMA query_only = ON; PRAGMA cache_size = -4096; PRAGMA temp_store = MEMORY;")
        .map_err(from_sqlite)?;
    connection.busy_timeout(std::time::Duration::from_secs(5)).map_err(from_sqlite)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}
