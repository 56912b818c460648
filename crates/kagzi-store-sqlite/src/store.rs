//! Opening the store.

use std::{path::Path, sync::Arc, thread};

use kagzi_store::{Clock, Lane, LaneOptions, LaneStore, Observer, StoreError};

use crate::{backend::SqliteBackend, file_lock::FileLock, migrate::migrate, pool::ReadPool, sqlite};

pub use crate::reads::SqliteReads;

/// Readers in the pool. Two are enough: reads are short, and there are two cores.
const READERS: usize = 2;

/// Opens SQLite stores.
pub struct SqliteStore;

impl SqliteStore {
    /// Opens or creates the database file and starts its writer thread. A file that another process has open
    /// is refused, and so is one written by a newer Kagzi.
    pub fn open(
        path: &Path,
        clock: Arc<dyn Clock>,
        observer: Arc<dyn Observer>,
    ) -> Result<LaneStore<SqliteReads>, StoreError> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|error| {
                StoreError::Unavailable(format!("could not create {}: {error}", folder.display()))
            })?;
        }
        let lock = FileLock::take(path)?;
        let writer = sqlite::writer(path)?;
        migrate(&writer)?;
        let readers = (0..READERS).map(|_| sqlite::reader(path)).collect::<Result<_, _>>()?;
        let pool = ReadPool::over(readers)?;
        let backend = SqliteBackend::new(writer, lock);
        let (lane, handle) = Lane::new(backend, clock, observer, LaneOptions::default());
        // A thread of its own: a commit blocks for an fsync, which must not hold up an async worker thread.
        thread::Builder::new()
            .name("kagzi-write".into())
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_time()
                    .build()
                    .expect("a runtime with a timer can always be built");
                runtime.block_on(lane.run());
            })
            .map_err(|error| StoreError::Unavailable(format!("could not start the writer: {error}")))?;
        Ok(LaneStore::new(handle, SqliteReads::new(pool), format!("sqlite:{}", path.display())))
    }
}
