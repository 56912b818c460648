//! The repository's files.

use std::path::{Path, PathBuf};

/// A text file, named by its path from the root.
pub struct File {
    pub path: String,
    pub text: String,
}

/// Directories that are not ours, or not written by hand.
const SKIPPED: [&str; 6] = [".git", "target", "node_modules", "generated", "snapshots", "__pycache__"];

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// Every file that ends so, in order of its path.
pub fn files(endings: &[&str]) -> Vec<File> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the repository") {
            let entry = entry.expect("an entry of a folder");
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type().expect("the kind of an entry");
            if kind.is_dir() && !SKIPPED.contains(&name.as_str()) && !is_scratch(&name) {
                folders.push(entry.path());
            }
            if kind.is_file() && endings.iter().any(|ending| name.ends_with(ending)) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found.iter().map(|path| read(&root, path)).collect()
}

/// What a server, a virtual environment or an editor leaves beside the sources: hidden, and not of Git.
fn is_scratch(name: &str) -> bool {
    name.starts_with('.') && name != ".cargo" && name != ".ci"
}

fn read(root: &Path, path: &Path) -> File {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let path = path.strip_prefix(root).expect("a path below the root").to_string_lossy().into_owned();
    File { path, text }
}

pub fn file(path: &str) -> File {
    let root = root();
    read(&root, &root.join(path))
}
