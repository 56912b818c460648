//! Copies of a database, taken while a server writes to it, and put back when it does not.

use std::{
    ffi::OsString,
    fs::{self, File},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use kagzi_store::StoreError;
use rusqlite::{
    Connection, OpenFlags,
    backup::{Backup, StepResult},
};

use crate::{file_lock::FileLock, private, restore_fence::fence};

/// Every page in one step. In smaller ones every commit of the server would send the copy back to its
/// beginning, and under load it would never end. The price: the WAL cannot be cut back while the copy is
/// made, so it grows.
const ALL_PAGES: i32 = -1;

/// Copies the database at `from` into the new file `to`, and says how many bytes it has. The server that owns
/// `from` goes on: the copy is the state of one moment, and has everything that was acknowledged before the
/// call.
pub fn backup(from: &Path, to: &Path) -> Result<u64, StoreError> {
    if to.exists() {
        return Err(refused(format!("{} is there already; choose another name", to.display())));
    }
    copy(from, to)
}

/// What may be lost by putting a backup back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// A database that is there stays.
    Never,
    /// It is replaced, unless a process has it open.
    Stopped,
}

/// Puts the backup `from` where a server will look for its database. Leases that were given out before or
/// after the backup was made are good no more, so that nobody writes from a time that this database does not
/// know.
pub fn restore(from: &Path, to: &Path, replace: Replace) -> Result<u64, StoreError> {
    if let Some(folder) = to.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        private::create_folders(folder).map_err(|error| file_error("create", folder, &error))?;
    }
    // Also when it is to be replaced: pulling the file away under a server would cost what it acknowledges
    // next.
    let _lock = FileLock::take(to)?;
    if replace == Replace::Never && to.exists() {
        return Err(refused(format!("{} is there already, with runs of its own", to.display())));
    }
    copy_aside(from, to)?;
    let bytes = fence_aside(to)?;
    // The log of the former database must not be read into the new one.
    for suffix in ["-wal", "-shm"] {
        remove(&beside(to, suffix))?;
    }
    put_in_place(to)?;
    Ok(bytes)
}

fn copy(from: &Path, to: &Path) -> Result<u64, StoreError> {
    let bytes = copy_aside(from, to)?;
    put_in_place(to)?;
    Ok(bytes)
}

/// Under another name until it is whole and on disk: half a copy is never taken for a copy.
fn copy_aside(from: &Path, to: &Path) -> Result<u64, StoreError> {
    let partial = beside(to, ".partial");
    remove(&partial)?;
    // Made before SQLite does, which would let everybody read it.
    private::open(&partial).map_err(|error| file_error("create", &partial, &error))?;
    let copied = copy_pages(from, &partial);
    if let Err(error) = copied {
        remove(&partial)?;
        return Err(StoreError::Unavailable(format!(
            "could not copy {} to {}: {error}",
            from.display(),
            to.display()
        )));
    }
    synced_len(&partial)
}

fn synced_len(path: &Path) -> Result<u64, StoreError> {
    let file = File::open(path).map_err(|error| file_error("open", path, &error))?;
    file.sync_all().map_err(|error| file_error("sync", path, &error))?;
    Ok(file.metadata().map_err(|error| file_error("read", path, &error))?.len())
}

/// Fences the copy before anybody can open it under its name.
fn fence_aside(to: &Path) -> Result<u64, StoreError> {
    let partial = beside(to, ".partial");
    let fenced = fence(&partial).and_then(|()| {
        // Closing moves the log into the file. Should that fail, the fence would go with the log.
        match fs::metadata(beside(&partial, "-wal")) {
            Ok(log) if log.len() > 0 => {
                Err(refused(format!("the log of {} could not be moved into it", partial.display())))
            }
            Ok(_) | Err(_) => synced_len(&partial),
        }
    });
    if fenced.is_err() {
        remove(&partial)?;
    }
    for suffix in ["-wal", "-shm", ".lock"] {
        remove(&beside(&partial, suffix))?;
    }
    fenced
}

fn copy_pages(from: &Path, to: &Path) -> rusqlite::Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(from, flags)?;
    let mut copy = Connection::open(to)?;
    {
        let backup = Backup::new(&source, &mut copy)?;
        loop {
            match backup.step(ALL_PAGES)? {
                StepResult::Done => break,
                // Somebody checkpoints or closes just now.
                StepResult::More | StepResult::Busy | StepResult::Locked => {
                    thread::sleep(Duration::from_millis(10));
                }
                _ => thread::sleep(Duration::from_millis(10)),
            }
        }
    }
    // One file, without a log beside it. The server that opens it turns the log on again.
    copy.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))
}

fn put_in_place(to: &Path) -> Result<(), StoreError> {
    let partial = beside(to, ".partial");
    fs::rename(&partial, to).map_err(|error| file_error("rename", &partial, &error))?;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| file_error("sync", folder, &error))
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name: OsString = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(file_error("remove", path, &error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn file_error(what: &str, path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Unavailable(format!("could not {what} {}: {error}", path.display()))
}

fn refused(message: String) -> StoreError {
    StoreError::Unavailable(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{migrate::migrate, sqlite};

    fn database(path: &Path) -> crate::db::Db {
        let db = sqlite::writer(path).unwrap();
        migrate(&db).unwrap();
        db
    }

    #[test]
    fn a_copy_is_one_file_with_what_was_committed_and_never_overwrites() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("a.db"), dir.path().join("copy.db"));
        let _open = database(&from);

        assert!(backup(&from, &to).unwrap() > 0);

        let mut names: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["a.db", "a.db-shm", "a.db-wal", "copy.db"]);
        let error = backup(&from, &to).unwrap_err().to_string();
        assert!(error.contains("is there already"), "{error}");
    }

    #[test]
    fn what_is_no_database_is_not_copied_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("a.db"), dir.path().join("copy.db"));
        fs::write(&from, "not a database, but long enough to have a header of its own".repeat(50)).unwrap();

        let error = backup(&from, &to).unwrap_err().to_string();

        assert!(error.contains("not a database"), "{error}");
        assert!(backup(&dir.path().join("missing.db"), &to).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "only the source is there");
    }

    #[test]
    fn a_database_is_replaced_only_when_told_and_never_while_it_is_open() {
        let dir = tempfile::tempdir().unwrap();
        let (live, copy) = (dir.path().join("a.db"), dir.path().join("copy.db"));
        drop(database(&live));
        backup(&live, &copy).unwrap();

        let error = restore(&copy, &live, Replace::Never).unwrap_err().to_string();
        assert!(error.contains("is there already"), "{error}");
        assert!(restore(&copy, &live, Replace::Stopped).is_ok());
        assert!(restore(&copy, &dir.path().join("new/b.db"), Replace::Never).is_ok());

        let mut names: Vec<_> =
            fs::read_dir(dir.path().join("new")).unwrap().map(|file| file.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["b.db", "b.db.lock"], "one file, and the lock that a server takes");
        let _open = FileLock::take(&live).unwrap();
        let error = restore(&copy, &live, Replace::Stopped).unwrap_err().to_string();
        assert!(error.contains("in use by another kagzi process"), "{error}");
    }
}
