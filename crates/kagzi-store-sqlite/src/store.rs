//! Opening the store.

use std::{path::Path, sync::Arc, thread};

use kagzi_store::{Clock, Lane, LaneOptions, LaneStore, Observer, StoreError};

#[cfg(feature = "turso")]
use crate::turso;
use crate::{
    backend::SqliteBackend, db::Db, file_lock::FileLock, migrate::migrate, newest::newest, pool::ReadPool,
    sqlite,
};

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
        let lock = claim_file(path)?;
        let writer = sqlite::writer(path)?;
        let name = format!("sqlite:{}", path.display());
        start(Opened { name, lock, writer, reader: || sqlite::reader(path) }, clock, observer)
    }
}

/// Opens Turso stores: the same store on another engine. Beta; see docs/turso.md.
#[cfg(feature = "turso")]
pub struct TursoStore;

#[cfg(feature = "turso")]
impl TursoStore {
    /// As [`SqliteStore::open`]. A file that SQLite made is refused: Turso cannot write its tables.
    pub fn open(
        path: &Path,
        clock: Arc<dyn Clock>,
        observer: Arc<dyn Observer>,
    ) -> Result<LaneStore<SqliteReads>, StoreError> {
        let lock = claim_file(path)?;
        let database = turso::open(path)?;
        let writer = turso::writer(&database)?;
        let name = format!("turso:{}", path.display());
        start(Opened { name, lock, writer, reader: || turso::reader(&database) }, clock, observer)
    }
}

fn claim_file(path: &Path) -> Result<FileLock, StoreError> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| {
            StoreError::Unavailable(format!("could not create {}: {error}", folder.display()))
        })?;
    }
    FileLock::take(path)
}

struct Opened<R> {
    name: String,
    lock: FileLock,
    writer: Db,
    reader: R,
}

fn start<R: Fn() -> Result<Db, StoreError>>(
    opened: Opened<R>,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn Observer>,
) -> Result<LaneStore<SqliteReads>, StoreError> {
    let Opened { name, lock, writer, reader } = opened;
    migrate(&writer)?;
    if let Some(newest) = newest(&writer)? {
        clock.not_before(newest);
    }
    let backend = SqliteBackend::new(writer, lock);
    let (lane, handle) = Lane::new(backend, clock, observer, LaneOptions::default());
    // Readers come last: a fresh file has no tables before.
    let pool = ReadPool::over((0..READERS).map(|_| reader()).collect::<Result<_, _>>()?, handle.stats())?;
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
    Ok(LaneStore::new(handle, SqliteReads::new(pool), name))
}
