//! Files and folders that nobody else on the machine can read: payloads are in them.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io,
    path::Path,
};

/// Opens a file for reading and writing, made for its owner alone if it is not there.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Makes a folder and those above it, for their owner alone. Folders that are there stay as they are.
pub fn create_folders(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Says so when others can read a file that an earlier version made. Its owner may want that, so it stays.
pub fn warn_if_shared(path: &Path) {
    #[cfg(unix)]
    if let Ok(found) = std::fs::metadata(path)
        && std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o077 != 0
    {
        tracing::warn!(
            file = %path.display(),
            "other users of this machine can read the database, with the payloads of all runs; to change \
             that: \
             chmod 600 FILE FILE-wal FILE-shm"
        );
    }
    #[cfg(not(unix))]
    let _ = path;
}
