//! The lock on a database file itself, by whatever name it was found.

use std::{collections::BTreeSet, fs::File, path::Path};

use kagzi_store::StoreError;
use parking_lot::Mutex;

/// Device and number: what a file is, whatever it is called.
type Key = (u64, u64);

/// The databases that this process has open. Asked before a file is opened: closing any handle of a file ends
/// the locks that SQLite holds on it in this process.
static OPEN: Mutex<BTreeSet<Key>> = Mutex::new(BTreeSet::new());

/// One database file, claimed.
#[derive(Debug)]
pub struct Inode {
    key: Option<Key>,
    _file: Option<File>,
}

impl Inode {
    /// Claims an existing file.
    pub fn claim(database: &Path) -> Result<Inode, StoreError> {
        let refused = |why: &str| StoreError::Unavailable(format!("{} {why}", database.display()));
        let found =
            std::fs::metadata(database).map_err(|error| refused(&format!("is unreadable: {error}")))?;
        if !found.is_file() {
            return Err(refused("is not a file"));
        }
        // The write-ahead log is named after the file: each name would have its own, and one of them would be
        // lost.
        if names(&found) > 1 {
            return Err(refused(
                "has a second name (a hard link), under which its write-ahead log would not be found; \
                 remove the \
                 other name, and copy databases with `kagzi backup`",
            ));
        }
        let key = key(&found);
        if key.is_some_and(|key| !OPEN.lock().insert(key)) {
            let pid = std::process::id();
            return Err(refused(&format!(
                "is in use by another kagzi process (pid {pid}, this one); open it once, or choose another \
                 file"
            )));
        }
        // From here on dropping it takes the key out again.
        let mut claimed = Inode { key, _file: None };
        claimed._file = lock(database, &refused)?;
        Ok(claimed)
    }

    /// Whether this name leads to the claimed file.
    pub fn is_at(&self, database: &Path) -> bool {
        match self.key {
            Some(claimed) => std::fs::metadata(database).is_ok_and(|found| key(&found) == Some(claimed)),
            None => true,
        }
    }
}

impl Drop for Inode {
    fn drop(&mut self) {
        // Together: once it is closed, a file that was removed gives its number to the next one that is made.
        let mut open = OPEN.lock();
        self._file = None;
        if let Some(key) = self.key {
            open.remove(&key);
        }
    }
}

/// On Linux this lock and those of SQLite do not see each other. Elsewhere they do, and SQLite could not
/// work: there the file beside the database is all there is.
#[cfg(target_os = "linux")]
fn lock(database: &Path, refused: &dyn Fn(&str) -> StoreError) -> Result<Option<File>, StoreError> {
    use std::fs::TryLockError;

    let file = File::open(database).map_err(|error| refused(&format!("could not be opened: {error}")))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(refused(
            "is in use by another kagzi process, under another name or with a lock file that was removed",
        )),
        // Some file systems have no such locks; the one beside the database is taken.
        Err(TryLockError::Error(error)) => {
            tracing::warn!(%error, database = %database.display(), "the file itself cannot be locked");
            Ok(None)
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn lock(database: &Path, refused: &dyn Fn(&str) -> StoreError) -> Result<Option<File>, StoreError> {
    // Open all the same, so that its number stays its own.
    File::open(database).map(Some).map_err(|error| refused(&format!("could not be opened: {error}")))
}

#[cfg(unix)]
fn key(found: &std::fs::Metadata) -> Option<Key> {
    use std::os::unix::fs::MetadataExt;

    Some((found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn key(_found: &std::fs::Metadata) -> Option<Key> {
    None
}

#[cfg(unix)]
fn names(found: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(found)
}

#[cfg(not(unix))]
fn names(_found: &std::fs::Metadata) -> u64 {
    1
}
