//! The store that is measured: always a scratch one.

use std::path::{Path, PathBuf};

use anyhow::Context;
use kagzi_server::StoreUrl;

use crate::cleanup::{self, Cleanup};

#[derive(Clone, PartialEq, Eq)]
pub enum BenchStore {
    Sqlite,
    Turso,
    /// A server on which a database may be created.
    Postgres(String),
}

impl BenchStore {
    /// The word in the figures.
    pub fn name(&self) -> &'static str {
        match self {
            BenchStore::Sqlite => "sqlite",
            BenchStore::Turso => "turso",
            BenchStore::Postgres(_) => "postgres",
        }
    }

    pub fn is_postgres(&self) -> bool {
        self.postgres().is_some()
    }

    /// The URL of the PostgreSQL server.
    pub fn postgres(&self) -> Option<&str> {
        match self {
            BenchStore::Postgres(url) => Some(url),
            BenchStore::Sqlite | BenchStore::Turso => None,
        }
    }

    /// A new store, removed by the cleanup.
    pub async fn create(&self, dir: &Path, cleanup: &Cleanup) -> anyhow::Result<StoreUrl> {
        match self {
            BenchStore::Sqlite => Ok(StoreUrl::Sqlite(dir.join("bench.db"))),
            BenchStore::Turso => Ok(StoreUrl::Turso(dir.join("bench.turso"))),
            BenchStore::Postgres(url) => Ok(StoreUrl::Postgres(scratch_database(url, cleanup).await?)),
        }
    }
}

/// Creates a database beside the one that the URL names, and answers with its URL.
pub async fn scratch_database(url: &str, cleanup: &Cleanup) -> anyhow::Result<String> {
    let name = format!("kagzi_bench_{}", uuid::Uuid::now_v7().simple());
    // Before it exists: a Ctrl-C in between must find it.
    cleanup.database(url, &name);
    let created = cleanup::execute(url, &format!("CREATE DATABASE {name}")).await;
    created.context("could not create a scratch database; the user needs the right CREATEDB")?;
    Ok(beside(url, &name))
}

pub fn parse(text: &str) -> Result<BenchStore, String> {
    match text {
        "sqlite" => Ok(BenchStore::Sqlite),
        // Parsed as well: a build without Turso has a message for it.
        "turso" => "turso:bench".parse::<StoreUrl>().map(|_| BenchStore::Turso),
        url if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
            Ok(BenchStore::Postgres(url.to_owned()))
        }
        other => {
            Err(format!("'{other}' cannot be measured; write sqlite, turso or postgres://USER@HOST/DATABASE"))
        }
    }
}

/// The same URL with another database.
fn beside(url: &str, database: &str) -> String {
    let (address, options) = url.split_once('?').map_or((url, ""), |(address, options)| (address, options));
    let begin = address.find("://").map_or(0, |at| at + 3);
    let host_end = address[begin..].find('/').map_or(address.len(), |at| begin + at);
    let options = if options.is_empty() { String::new() } else { format!("?{options}") };
    format!("{}/{database}{options}", &address[..host_end])
}

/// A directory on the disk that is to be measured. Not in /tmp by default: that is often memory, where an
/// fsync costs nothing and a benchmark says nothing.
pub fn scratch_directory(parent: &Path, cleanup: &Cleanup) -> anyhow::Result<PathBuf> {
    let made = tempfile::Builder::new().prefix(".kagzi-bench-").tempdir_in(parent).with_context(|| {
        format!("could not create a scratch directory in {}; choose one with --scratch", parent.display())
    })?;
    let path = made.keep();
    cleanup.directory(path.clone());
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_database_of_the_same_server_is_named() {
        assert_eq!(beside("postgres://me:pw@host:5433/app", "b"), "postgres://me:pw@host:5433/b");
        assert_eq!(beside("postgres://me@host", "b"), "postgres://me@host/b");
        assert_eq!(beside("postgres:///app?host=/run/pg&port=1", "b"), "postgres:///b?host=/run/pg&port=1");
    }

    #[test]
    fn only_scratch_stores_are_measured() {
        assert!(parse("sqlite").is_ok_and(|store| !store.is_postgres()));
        assert!(parse("postgres://host/db").is_ok_and(|store| store.is_postgres()));
        assert!(parse("sqlite:mine.db").is_err());
    }
}
