//! The writing side: the one connection that writes, and the rows of a batch.

use kagzi_store::{Backend, StoreError, WriteSet};

use crate::{
    controls, db::Db, events, file_lock::FileLock, generations, interventions, labels, notices, nouns, runs,
    schedules, sound::Check, topics, workers,
};

kagzi_store::statements! {
/// The statement of no table; a test prepares it on a real database.
STATEMENTS:

// A write that finds no row: it needs the write lock and nothing else. By the key, because Turso would look
// at every row for `1 = 0`.
const PROBE: &str = "UPDATE workers
    SET pid = pid
  WHERE worker_id = x''";
}

/// The connection that writes, and the lock that makes it the only one.
pub struct SqliteBackend {
    db: Db,
    lock: FileLock,
    check: Check,
}

impl SqliteBackend {
    pub fn new(db: Db, lock: FileLock, check: Check) -> Self {
        SqliteBackend { db, lock, check }
    }

    pub(crate) fn db(&self) -> &Db {
        &self.db
    }
}

impl Backend for SqliteBackend {
    async fn begin(&mut self) -> Result<(), StoreError> {
        self.lock.still_there()?;
        self.db.begin()
    }

    async fn commit(&mut self) -> Result<(), StoreError> {
        self.db.commit()
    }

    async fn probe(&mut self) -> Result<(), StoreError> {
        self.db.execute(PROBE, &[]).map(drop)
    }

    async fn rollback(&mut self) {
        self.db.rollback();
    }

    async fn write(&mut self, set: WriteSet) -> Result<(), StoreError> {
        // One execution per row: SQLite has no round trip that a batch could save.
        runs::unname(&self.db, &set.unnamed)?;
        runs::insert(&self.db, &set.inserted)?;
        runs::update(&self.db, &set.updated)?;
        events::write(&self.db, &set.events)?;
        generations::write(&self.db, &set.continued)?;
        labels::write(&self.db, &set.labels)?;
        workers::write(&self.db, &set.workers)?;
        schedules::write(&self.db, &set.schedules)?;
        controls::write(&self.db, &set.namespaces, &set.gates)?;
        nouns::write(&self.db, &set.nouns)?;
        topics::write(&self.db, &set.subscribed, &set.unsubscribed)?;
        let Some(people) = &set.people else { return Ok(()) };
        interventions::write(&self.db, &people.questions)?;
        notices::write(&self.db, people)
    }
}

impl Drop for SqliteBackend {
    /// A clean stop leaves everything in the one file, so that copying it is a backup. Should it fail, the
    /// WAL beside it still holds what is missing.
    fn drop(&mut self) {
        self.check.stop();
        if let Err(error) = self.db.move_log() {
            tracing::warn!(%error, "could not move the write-ahead log into the database file");
        }
    }
}
