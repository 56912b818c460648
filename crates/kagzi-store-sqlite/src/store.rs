//! Opening the store.

use std::{path::Path, sync::Arc, thread};

use kagzi_store::{Clock, Lane, LaneOptions, Observer, Store, StoreError};

#[cfg(feature = "turso")]
use crate::turso;
use crate::{
    backend::SqliteBackend,
    db::Db,
    file_lock::FileLock,
    identity::{self, Found},
    left_log,
    migrate::{self, migrate},
    newest::newest,
    pool::{Connections, ReadPool},
    private,
    sound::{self, Check},
    sqlite,
};

pub use crate::reads::SqliteReads;

/// Readers for whoever looks. Two are enough: reads are short, and there are two cores. One more serves
/// workers only.
const READERS: usize = 2;

/// Opens SQLite stores.
pub struct SqliteStore;

impl SqliteStore {
    /// Opens or creates the database file and starts its writer thread. A file that another process has open
    /// is refused, and so is one written by a newer Kagzi or by another program. What is wrong with the file
    /// and still lets it be opened is said in the log, or makes the store refuse all work.
    pub fn open(
        path: &Path,
        clock: Arc<dyn Clock>,
        observer: Arc<dyn Observer>,
    ) -> Result<Store, StoreError> {
        let mut lock = claim_file(path)?;
        let name = format!("sqlite:{}", path.display());
        let path = lock.database().to_owned();
        let clean = left_log::examine(&path)?;
        if identity::recognise(&path)? == Found::Nothing {
            lock.refuse_empty()?;
        }
        let writer = sqlite::writer(&path)?;
        migrate(&writer)?;
        identity::sign(&writer)?;
        lock.remember_made()?;
        let opened =
            Opened { name, lock, writer, reader: || sqlite::reader(&path), check: Some((&path, clean)) };
        start(opened, clock, observer)
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
    ) -> Result<Store, StoreError> {
        let lock = claim_file(path)?;
        let database = turso::open(path)?;
        let writer = turso::writer(&database)?;
        let name = format!("turso:{}", path.display());
        migrate(&writer)?;
        let opened = Opened { name, lock, writer, reader: || turso::reader(&database), check: None };
        start(opened, clock, observer)
    }
}

fn claim_file(path: &Path) -> Result<FileLock, StoreError> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        private::create_folders(folder).map_err(|error| {
            StoreError::Unavailable(format!("could not create {}: {error}", folder.display()))
        })?;
    }
    let lock = FileLock::take_and_create(path)?;
    private::warn_if_shared(lock.database());
    Ok(lock)
}

struct Opened<'p, R> {
    name: String,
    lock: FileLock,
    writer: Db,
    reader: R,
    /// Where the file is that should be checked, and whether the last stop was clean.
    check: Option<(&'p Path, bool)>,
}

fn start<R: Fn() -> Result<Db, StoreError>>(
    opened: Opened<'_, R>,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn Observer>,
) -> Result<Store, StoreError> {
    let Opened { name, lock, writer, reader, check } = opened;
    let read = sound::read_tables(&writer).and_then(|()| newest(&writer));
    let kinds_level = match migrate::kinds_level(&writer) {
        // Nothing is written to a damaged file.
        Err(StoreError::Damaged(_)) => 0,
        level => level?,
    };
    let options = LaneOptions { kinds_level, ..LaneOptions::default() };
    let checking = Check::default();
    let backend = SqliteBackend::new(writer, lock, checking.clone());
    let (lane, handle) = Lane::new(backend, clock.clone(), observer, options);
    match handle.stats().note_damage(read) {
        Ok(newest) => newest.into_iter().for_each(|newest| clock.not_before(newest)),
        // The store opens all the same, to say so to everybody who asks.
        Err(StoreError::Damaged(_)) => {}
        Err(error) => return Err(error),
    }
    if let Some((path, clean)) = check {
        checking.begin(path, clean, handle.stats());
    }
    // Readers come last: a fresh file has no tables before.
    let looking = (0..READERS).map(|_| reader()).collect::<Result<_, _>>()?;
    let pool = ReadPool::over(Connections { looking, dispatch: vec![reader()?] }, handle.stats())?;
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
    Ok(Store::new(handle, SqliteReads::new(pool), name))
}
