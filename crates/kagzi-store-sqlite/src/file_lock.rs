//! One process per file. Two would each believe their own memory and undo each other's work.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{Read, Seek, Write},
    path::{Path, PathBuf},
};

use kagzi_store::StoreError;

/// Held for as long as the store is open; the system gives it back when the process dies.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

impl FileLock {
    /// Takes the lock beside the database file, or says who has it.
    pub fn take(database: &Path) -> Result<Self, StoreError> {
        let path = lock_path(database);
        let cannot = |error: std::io::Error| {
            StoreError::Unavailable(format!("could not open the lock file {}: {error}", path.display()))
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(cannot)?;
        match file.try_lock() {
            Ok(()) => {
                file.set_len(0).map_err(cannot)?;
                write!(file, "{}", std::process::id()).map_err(cannot)?;
                Ok(FileLock { _file: file })
            }
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                // Only for the message; an unreadable owner is still an owner.
                let _ = file.rewind().and_then(|()| file.read_to_string(&mut owner));
                Err(StoreError::Unavailable(format!(
                    "{} is in use by another kagzi process (pid {}); stop it, or choose another file",
                    database.display(),
                    owner.trim()
                )))
            }
            Err(TryLockError::Error(error)) => Err(cannot(error)),
        }
    }
}

fn lock_path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}
