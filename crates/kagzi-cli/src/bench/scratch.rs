use anyhow::Context;
use std::path::Path;
use tempfile::TempDir;

/// A directory on the disk that is to be measured, removed when it goes out of scope. Not in /tmp by default:
/// that is often memory, where an fsync costs nothing and a benchmark says nothing.
pub fn open(parent: &Path) -> anyhow::Result<TempDir> {
    tempfile::Builder::new().prefix(".kagzi-bench-").tempdir_in(parent).with_context(|| {
        format!("could not create a scratch directory in {}; choose one with --scratch", parent.display())
    })
}
