//! One process per file. Two would each believe their own memory and undo each other's work.
//!
//! Two locks: one on a file beside the database, which also remembers what was there, and one on the database
//! file itself, so that another name of it (a symbolic link, a removed lock file) leads to the same lock.

mod inode;

use std::{
    fs::{File, TryLockError},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
};

use kagzi_store::StoreError;

use crate::private;
use inode::Inode;

/// Stands in the lock file once a database was there: an empty file in its place is then no new beginning.
const MADE: &str = "a database was made here";

/// Held for as long as the store is open; the system gives it back when the process dies.
#[derive(Debug)]
pub struct FileLock {
    database: PathBuf,
    lock: File,
    /// None when there is no database yet, and only its place is locked.
    inode: Option<Inode>,
    made_before: bool,
}

impl FileLock {
    /// Locks the place of a database, and the database if there is one, or says who has it.
    pub fn take(database: &Path) -> Result<Self, StoreError> {
        let database = real(database)?;
        let path = lock_path(&database);
        let cannot = |error: io::Error| {
            StoreError::Unavailable(format!("could not open the lock file {}: {error}", path.display()))
        };
        let mut lock = private::open(&path).map_err(cannot)?;
        let mut content = String::new();
        match lock.try_lock() {
            Ok(()) => {
                // Only for the marker; a lock file that makes no sense has none.
                let _ = lock.read_to_string(&mut content);
            }
            Err(TryLockError::WouldBlock) => {
                // Only for the message; an unreadable owner is still an owner.
                let _ = lock.read_to_string(&mut content);
                let owner = content.lines().next().unwrap_or_default();
                return Err(StoreError::Unavailable(format!(
                    "{} is in use by another kagzi process (pid {owner}); stop it, or choose another file",
                    database.display(),
                )));
            }
            Err(TryLockError::Error(error)) => return Err(cannot(error)),
        }
        let made_before = content.lines().any(|line| line == MADE);
        let inode = if database.exists() { Some(Inode::claim(&database)?) } else { None };
        let mut taken = FileLock { database, lock, inode, made_before };
        taken.write().map_err(cannot)?;
        Ok(taken)
    }

    /// The same for a database that is made now if it is not there.
    pub fn take_and_create(database: &Path) -> Result<Self, StoreError> {
        let mut taken = FileLock::take(database)?;
        if taken.inode.is_none() {
            if taken.made_before {
                tracing::warn!(
                    database = %taken.database.display(),
                    "there was a database here and it is gone; an empty one is made"
                );
            }
            private::open(&taken.database).map_err(|error| {
                StoreError::Unavailable(format!("could not create {}: {error}", taken.database.display()))
            })?;
            taken.inode = Some(Inode::claim(&taken.database)?);
            taken.made_before = false;
        }
        Ok(taken)
    }

    /// Where the database really is, without symbolic links.
    pub fn database(&self) -> &Path {
        &self.database
    }

    /// Whoever finds an empty database here where one was made before does not begin anew in silence.
    pub fn refuse_empty(&self) -> Result<(), StoreError> {
        if !self.made_before {
            return Ok(());
        }
        Err(StoreError::Unavailable(format!(
            "{0} is empty, and there was a database in it before: put a backup back with `kagzi restore \
             BACKUP \
             --store sqlite:{0} --replace`, or remove {1} to begin anew",
            self.database.display(),
            lock_path(&self.database).display()
        )))
    }

    /// From now on there is a database here.
    pub fn remember_made(&mut self) -> Result<(), StoreError> {
        self.made_before = true;
        self.write().map_err(|error| {
            StoreError::Unavailable(format!(
                "could not write {}: {error}",
                lock_path(&self.database).display()
            ))
        })
    }

    /// Whether the name still leads to the file that is open. If not, whatever is written is lost for the
    /// next start, which finds another file or none.
    pub fn still_there(&self) -> Result<(), StoreError> {
        match &self.inode {
            Some(inode) if !inode.is_at(&self.database) => Err(StoreError::Unavailable(format!(
                "{} was moved, removed or replaced while the server has it open; move it back, or stop the \
                 server",
                self.database.display()
            ))),
            Some(_) | None => Ok(()),
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let mut content = format!("{}\n", std::process::id());
        if self.made_before {
            content.push_str(MADE);
            content.push('\n');
        }
        self.lock.rewind()?;
        self.lock.write_all(content.as_bytes())?;
        self.lock.set_len(content.len() as u64)
    }
}

/// The path without symbolic links, also of a file that is not there yet.
fn real(path: &Path) -> Result<PathBuf, StoreError> {
    if let Ok(found) = path.canonicalize() {
        return Ok(found);
    }
    let cannot = |why: &dyn std::fmt::Display| {
        StoreError::Unavailable(format!("could not open {}: {why}", path.display()))
    };
    if path.is_symlink() {
        return Err(cannot(&"it is a symbolic link to a file that is not there"));
    }
    let name = path.file_name().ok_or_else(|| cannot(&"the name of a file is missing"))?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(folder.canonicalize().map_err(|error| cannot(&error))?.join(name))
}

fn lock_path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}
