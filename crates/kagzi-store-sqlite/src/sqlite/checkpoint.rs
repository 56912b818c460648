//! Moves the write-ahead log into the database file, beside the writer instead of in its way.
//!
//! A checkpoint copies thousands of pages. A thread with a connection of its own does that while commits go
//! on. They leave a tail behind it, which the writer then moves itself: a few pages, and with them the log is
//! empty and its next commit begins it anew. If commits came without a pause, it is also the writer that
//! waits for the disk to have the copies.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::{SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use kagzi_store::StoreError;
use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode, config::DbConfig, hooks::Wal};

use super::from_sqlite;

/// Pages in the log before it is moved: 16 MiB. Fewer, longer checkpoints measured faster than SQLite's 4
/// MiB.
const LOG_PAGES: i32 = 2048;
/// When the log is this many times longer, the checkpoint thread is assumed dead, and the writer checkpoints
/// itself.
const LATE: i32 = 8;
/// Each pass moves what was committed during the one before.
const PASSES_MAX: usize = 6;

/// The files of this process under whose checkpoint the disk failed. Copies that it had taken before may be
/// gone, and Linux says so only once: from there on the log keeps everything, and the next opening moves it
/// from its beginning.
static DISK_FAILED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// What a file is known by: the path by which SQLite has it open.
fn file_of(connection: &Connection) -> String {
    connection.path().unwrap_or_default().to_owned()
}

/// Takes over the checkpoints of the connection that writes, until [`stop`].
pub fn beside(writer: &mut Connection, path: &Path) -> Result<(), StoreError> {
    beside_from(writer, path, LOG_PAGES)
}

/// Ends the thread; nothing moves the log any more.
pub fn stop(writer: &mut Connection) -> Result<(), StoreError> {
    writer.wal_hook(None::<fn(&mut Wal, i32) -> rusqlite::Result<()>>).map_err(from_sqlite)
}

/// Leaves everything in the one file, unless the log is the only copy that can be trusted.
pub fn finish(writer: &mut Connection) -> Result<(), StoreError> {
    stop(writer)?;
    if DISK_FAILED.lock().contains(&file_of(writer)) {
        return Ok(());
    }
    writer.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(from_sqlite)
}

fn beside_from(writer: &mut Connection, path: &Path, log_pages: i32) -> Result<(), StoreError> {
    let connection = Connection::open(path).map_err(from_sqlite)?;
    // FULL, as the writer: what is copied must be on the disk before the log is begun anew.
    connection
        .execute_batch("PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON")
        .map_err(from_sqlite)?;
    connection.busy_timeout(Duration::ZERO).map_err(from_sqlite)?;
    // After a disk error the log is the only good copy, so closing must not move it. A clean stop does it
    // first.
    for connection in [&connection, &*writer] {
        let off = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        connection.set_db_config(off, true).map_err(from_sqlite)?;
    }
    DISK_FAILED.lock().remove(&file_of(writer));
    let mut mover = Mover::start(connection, log_pages)?;
    writer
        .wal_hook(Some(move |log: &mut Wal, pages| {
            mover.after_commit(log, pages);
            // An error here would fail a commit that has happened.
            Ok(())
        }))
        .map_err(from_sqlite)
}

/// The thread that moves the log.
struct Mover {
    log_pages: i32,
    /// Asked to move. None once it has to end.
    wake: Option<SyncSender<()>>,
    asked: bool,
    progress: Arc<Progress>,
    thread: Option<JoinHandle<()>>,
}

struct Progress {
    file: String,
    /// The disk failed under this file.
    disk_failed: AtomicBool,
    /// The thread has moved what there was when it began.
    moved: AtomicBool,
    /// The last attempt failed otherwise, and that was said.
    told: AtomicBool,
}

impl Mover {
    fn start(connection: Connection, log_pages: i32) -> Result<Mover, StoreError> {
        let (wake, woken) = sync_channel::<()>(1);
        let progress = Arc::new(Progress {
            file: file_of(&connection),
            disk_failed: AtomicBool::new(false),
            moved: AtomicBool::new(false),
            told: AtomicBool::new(false),
        });
        let shared = progress.clone();
        let thread = thread::Builder::new()
            .name("kagzi-log".into())
            .spawn(move || {
                while woken.recv().is_ok() {
                    shared.note(move_all(&connection));
                    shared.moved.store(true, SeqCst);
                }
            })
            .map_err(|error| StoreError::Unavailable(format!("could not start a thread: {error}")))?;
        Ok(Mover { log_pages, wake: Some(wake), asked: false, progress, thread: Some(thread) })
    }

    fn after_commit(&mut self, log: &mut Wal, pages: i32) {
        if self.progress.disk_failed.load(SeqCst) {
            return;
        }
        if self.asked && self.progress.moved.swap(false, SeqCst) {
            self.asked = false;
            self.progress.note(log.checkpoint());
        } else if pages >= self.log_pages * LATE {
            self.progress.note(log.checkpoint());
        } else if pages >= self.log_pages && !self.asked {
            self.asked = self.wake.as_ref().is_some_and(|wake| wake.try_send(()).is_ok());
        }
    }
}

/// Passes until nothing was committed between two of them: then the first of the two has also waited for the
/// disk.
fn move_all(connection: &Connection) -> rusqlite::Result<()> {
    let mut before = None;
    for _ in 0..PASSES_MAX {
        let in_log =
            connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i32>(1))?;
        if before.replace(in_log) == Some(in_log) {
            break;
        }
    }
    Ok(())
}

impl Progress {
    /// What could not be moved is still in the log, and the next commit tries again, unless the disk itself
    /// failed.
    fn note(&self, checkpoint: rusqlite::Result<()>) {
        let Err(error) = checkpoint else { return self.told.store(false, SeqCst) };
        match error.sqlite_error_code() {
            // The other of the two is at it.
            Some(ErrorCode::DatabaseBusy) => {}
            Some(ErrorCode::SystemIoFailure) => {
                self.disk_failed.store(true, SeqCst);
                DISK_FAILED.lock().insert(self.file.clone());
                tracing::error!(
                    %error,
                    "the disk failed while the write-ahead log was moved; nothing is lost as long as the \
                     log stays: \
                     it grows until the server is restarted, which moves it again from its beginning"
                );
            }
            Some(_) | None => {
                if !self.told.swap(true, SeqCst) {
                    tracing::warn!(%error, "could not move the write-ahead log into the database file");
                }
            }
        }
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        self.wake = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that moves the write-ahead log panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: i32 = 64;

    fn opened(path: &Path) -> Connection {
        let mut writer = Connection::open(path).unwrap();
        let settings = "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0";
        writer.execute_batch(settings).unwrap();
        writer.execute_batch("CREATE TABLE t (n INTEGER, filler BLOB)").unwrap();
        beside_from(&mut writer, path, PAGES).unwrap();
        writer
    }

    fn insert(writer: &Connection, n: i32) {
        writer.execute("INSERT INTO t VALUES (?1, zeroblob(65536))", [n]).unwrap();
    }

    /// Frames in the log, and how many of them were moved.
    fn log(writer: &Connection) -> (i32, i32) {
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(1)?, row.get(2)?));
        writer.query_row("PRAGMA wal_checkpoint(NOOP)", [], read).unwrap()
    }

    #[test]
    fn the_thread_moves_the_log_and_the_next_commits_begin_it_anew() {
        let folder = tempfile::tempdir().unwrap();
        let writer = opened(&folder.path().join("a.db"));

        // The thread is asked by the commit that reaches the limit, and by none before it.
        let mut n = 0;
        while log(&writer).0 < PAGES {
            insert(&writer, n);
            n += 1;
        }
        let (before, _) = log(&writer);
        // No commit moves anything before the thread has.
        while log(&writer).1 == 0 {
            thread::yield_now();
        }
        // The thread says so a moment later; the commit after that finishes, and the one behind it begins
        // anew.
        while log(&writer).0 >= before {
            insert(&writer, n);
            n += 1;
        }

        let sum: i32 = writer.query_row("SELECT sum(n) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(sum, n * (n - 1) / 2);
    }

    #[test]
    fn a_disk_that_failed_under_one_file_concerns_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let (mut one, mut two) = (opened(&folder.path().join("1.db")), opened(&folder.path().join("2.db")));
        insert(&one, 1);
        insert(&two, 1);
        let failed = rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error { code: ErrorCode::SystemIoFailure, extended_code: 10 },
            None,
        );
        let progress = Progress {
            file: file_of(&one),
            disk_failed: AtomicBool::new(false),
            moved: AtomicBool::new(false),
            told: AtomicBool::new(false),
        };

        progress.note(Err(failed));
        finish(&mut one).unwrap();
        finish(&mut two).unwrap();

        assert!(log(&one).0 > 0, "its log is the only good copy");
        assert_eq!(log(&two).0, 0, "this one is moved as ever");
    }

    #[test]
    fn a_stopped_thread_leaves_the_log_to_a_clean_stop_and_nothing_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let mut writer = opened(&path);
        for n in 0..100 {
            insert(&writer, n);
        }

        stop(&mut writer).unwrap();
        (0..30).for_each(|n| insert(&writer, n));
        let (frames, moved) = log(&writer);
        assert!(frames - moved >= 30 * 16, "something has moved {moved} of {frames}");
        drop(writer);

        let reopened = Connection::open(&path).unwrap();
        let count: i32 = reopened.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).unwrap();
        assert_eq!(count, 130);
    }
}
