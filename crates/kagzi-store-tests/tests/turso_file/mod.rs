//! Turso stores over a temporary file. Each test program uses its part.
#![allow(dead_code)]

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use kagzi_store::{Clock, Observer, Store};
use kagzi_store_sqlite::TursoStore;
use kagzi_store_tests::StoreFactory;
use tempfile::TempDir;

/// One database file, gone when the factory is.
pub struct TursoFile {
    folder: TempDir,
}

impl TursoFile {
    pub fn fresh() -> Self {
        TursoFile { folder: tempfile::tempdir().expect("there is room for a test") }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("kagzi.turso")
    }
}

#[async_trait]
impl StoreFactory for TursoFile {
    async fn open(&self, clock: Arc<dyn Clock>, observer: Arc<dyn Observer>) -> Arc<Store> {
        Arc::new(TursoStore::open(&self.path(), clock, observer).expect("a fresh file opens"))
    }

    /// By SQLite, which reads what Turso has written.
    async fn execute(&self, sql: &str) {
        let db = rusqlite::Connection::open(self.path()).expect("the file is there");
        let changed = db.execute(sql, []).expect("the statement is right");
        assert!(changed > 0, "{sql} changed nothing");
    }
}

/// A factory over a file that stays when the factory is gone.
pub struct Kept(pub Arc<TursoFile>);

#[async_trait]
impl StoreFactory for Kept {
    async fn open(&self, clock: Arc<dyn Clock>, observer: Arc<dyn Observer>) -> Arc<Store> {
        self.0.open(clock, observer).await
    }
}
