use crate::percentile::round;
use anyhow::Context;
use rusqlite::{Connection, params};
use std::path::Path;
use std::time::{Duration, Instant};

const ROWS_PER_BATCH: u32 = 100;

pub struct Rates {
    pub commits_per_s: f64,
    pub rows_per_s: f64,
}

/// What one writer gets out of SQLite when every commit is durable.
pub fn rates(dir: &Path, span: Duration) -> anyhow::Result<Rates> {
    let mut database = open(&dir.join("limits.db")).context("could not open a scratch database")?;
    let singles_per_s = commits_per_s(&mut database, 1, span)?;
    let batches_per_s = commits_per_s(&mut database, ROWS_PER_BATCH, span)?;
    Ok(Rates {
        commits_per_s: round(singles_per_s, 1),
        rows_per_s: round(batches_per_s * f64::from(ROWS_PER_BATCH), 1),
    })
}

const SCHEMA: &str = "
CREATE TABLE record (
    id INTEGER PRIMARY KEY,
    payload BLOB NOT NULL
)";

const INSERT: &str = "
INSERT INTO record (payload)
VALUES (?1)";

fn open(path: &Path) -> rusqlite::Result<Connection> {
    let database = Connection::open(path)?;
    database.pragma_update(None, "journal_mode", "WAL")?;
    database.pragma_update(None, "synchronous", "FULL")?;
    database.execute(SCHEMA, [])?;
    Ok(database)
}

fn commits_per_s(database: &mut Connection, rows: u32, span: Duration) -> rusqlite::Result<f64> {
    let payload = [0x6bu8; 100];
    let began = Instant::now();
    let mut commits = 0u32;
    while began.elapsed() < span {
        let transaction = database.transaction()?;
        {
            let mut insert = transaction.prepare_cached(INSERT)?;
            for _ in 0..rows {
                insert.execute(params![payload])?;
            }
        }
        transaction.commit()?;
        commits += 1;
    }
    Ok(f64::from(commits) / began.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scratch_database_is_as_durable_as_ours() {
        let dir = tempfile::tempdir().unwrap();
        let database = open(&dir.path().join("limits.db")).unwrap();

        let journal: String = database.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        let synchronous: i64 = database.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();

        assert_eq!((journal.as_str(), synchronous), ("wal", 2));
    }
}
