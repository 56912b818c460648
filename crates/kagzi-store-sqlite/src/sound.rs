//! Whether a database file is sound, asked when a store opens it.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use kagzi_store::{LaneStats, StoreError};

use crate::{db::Db, sqlite};

/// How long the check of a file may take. It reads some 500 MB a second from a disk that is not busy; what it
/// did not reach is read by nobody until it is asked for.
const CHECK_MAX: Duration = Duration::from_secs(30);
/// A file of at most this size is checked at every start, a larger one after a stop that was not clean.
const SMALL: u64 = 256 << 20;
/// Instructions of SQLite's machine between two looks at the time: some microseconds.
const LOOK_EVERY: std::ffi::c_int = 10_000;

const TABLES: &str = "SELECT name FROM sqlite_schema WHERE type = 'table'";

/// Reads a row of every table, so that a table that cannot be read at all is known before the first caller
/// comes.
pub fn read_tables(db: &Db) -> Result<(), StoreError> {
    for table in db.all(TABLES, &[], |row| row.get::<String>(0))? {
        let quoted = table.replace('"', "\"\"");
        db.first(&format!("SELECT 1 FROM \"{quoted}\" LIMIT 1"), &[], |_| Ok(()))?;
    }
    Ok(())
}

/// A check of a file beside the work of the server.
#[derive(Debug, Clone, Default)]
pub struct Check {
    stop: Arc<AtomicBool>,
}

impl Check {
    /// Begins, and notes damage in `stats`.
    pub fn begin(&self, path: &Path, clean: bool, stats: Arc<LaneStats>) {
        let small = std::fs::metadata(path).is_ok_and(|found| found.len() <= SMALL);
        if clean && !small {
            return;
        }
        let (path, stop): (PathBuf, _) = (path.to_owned(), self.stop.clone());
        let checking = move || match check(&path, stop.clone()) {
            Ok(()) => tracing::debug!("the database file is sound"),
            Err(StoreError::Damaged(why)) => stats.damaged(&why),
            Err(_) if stop.load(Relaxed) => {}
            Err(error) => tracing::warn!(%error, "the database file could not be checked to its end"),
        };
        if let Err(error) = thread::Builder::new().name("kagzi-check".into()).spawn(checking) {
            tracing::warn!(%error, "the database file could not be checked");
        }
    }

    /// Ends it, so that it does not keep the file's log from being moved.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }
}

fn check(path: &Path, stop: Arc<AtomicBool>) -> Result<(), StoreError> {
    let mut db = sqlite::reader(path)?;
    let until = Instant::now() + CHECK_MAX;
    sqlite::interrupt_when(&mut db, LOOK_EVERY, move || stop.load(Relaxed) || Instant::now() > until)?;
    let found = db.first("PRAGMA quick_check(1)", &[], |row| row.get::<String>(0))?;
    match found.as_deref() {
        None | Some("ok") => Ok(()),
        Some(damage) => Err(sqlite::damaged(damage)),
    }
}
