//! What a benchmark leaves on disk and in databases, removed when it ends: well, badly or by Ctrl-C.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio_postgres::NoTls;

/// Processes that were just killed may still hold on for a moment.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Default)]
pub struct Cleanup {
    leftovers: Mutex<Vec<Leftover>>,
}

enum Leftover {
    Directory(PathBuf),
    /// `name` on the server at `admin`.
    Database {
        admin: String,
        name: String,
    },
}

impl Cleanup {
    pub fn directory(&self, path: PathBuf) {
        self.push(Leftover::Directory(path));
    }

    pub fn database(&self, admin: &str, name: &str) {
        self.push(Leftover::Database { admin: admin.to_owned(), name: name.to_owned() });
    }

    fn push(&self, leftover: Leftover) {
        self.leftovers.lock().unwrap_or_else(PoisonError::into_inner).push(leftover);
    }

    /// Removes everything; what cannot be removed is named, so that a person can.
    pub async fn run(&self) {
        let leftovers = std::mem::take(&mut *self.leftovers.lock().unwrap_or_else(PoisonError::into_inner));
        for leftover in leftovers {
            let removed = match &leftover {
                Leftover::Directory(path) => remove_directory(path.clone()).await,
                Leftover::Database { admin, name } => drop_database(admin, name).await,
            };
            if let Err(error) = removed {
                let what = match leftover {
                    Leftover::Directory(path) => path.display().to_string(),
                    Leftover::Database { name, .. } => format!("database {name}"),
                };
                kagzi_shell::output::note(&format!(
                    "could not remove {what}: {error:#}; please remove it yourself"
                ));
            }
        }
    }
}

async fn remove_directory(path: PathBuf) -> anyhow::Result<()> {
    for attempt in 1.. {
        match std::fs::remove_dir_all(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => break,
            Ok(()) => break,
            Err(error) if attempt == TRIES => return Err(error.into()),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
    Ok(())
}

async fn drop_database(admin: &str, name: &str) -> anyhow::Result<()> {
    execute(admin, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await
}

/// One statement on a connection of its own.
pub async fn execute(url: &str, sql: &str) -> anyhow::Result<()> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let connection = tokio::spawn(connection);
    let done = client.batch_execute(sql).await;
    drop(client);
    connection.abort();
    Ok(done?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn directories_are_removed_and_missing_ones_are_no_trouble() {
        let dir = tempfile::tempdir().unwrap();
        let (there, gone) = (dir.path().join("there"), dir.path().join("gone"));
        std::fs::create_dir_all(there.join("deep")).unwrap();
        let cleanup = Cleanup::default();
        cleanup.directory(there.clone());
        cleanup.directory(gone);

        cleanup.run().await;

        assert!(!there.exists());
    }
}
