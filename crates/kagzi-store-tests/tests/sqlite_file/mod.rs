//! SQLite stores over a temporary file.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use kagzi_store::{Clock, Observer, Store};
use kagzi_store_sqlite::SqliteStore;
use kagzi_store_tests::StoreFactory;
use tempfile::TempDir;

/// One database file, gone when the factory is.
pub struct SqliteFile {
    folder: TempDir,
}

impl SqliteFile {
    pub fn fresh() -> Self {
        SqliteFile { folder: tempfile::tempdir().expect("there is room for a test") }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("kagzi.db")
    }
}

#[async_trait]
impl StoreFactory for SqliteFile {
    async fn open(&self, clock: Arc<dyn Clock>, observer: Arc<dyn Observer>) -> Arc<Store> {
        Arc::new(SqliteStore::open(&self.path(), clock, observer).expect("a fresh file opens"))
    }

    async fn execute(&self, sql: &str) {
        let db = rusqlite::Connection::open(self.path()).expect("the file is there");
        let changed = db.execute(sql, []).expect("the statement is right");
        assert!(changed > 0, "{sql} changed nothing");
    }
}
