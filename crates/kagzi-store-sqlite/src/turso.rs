//! Turso: SQLite's dialect and file format on another engine. Beta: docs/turso.md says what was verified.
//!
//! What differs from SQLite is in this file: settings, the schema's `WITHOUT ROWID`, errors.

use std::{
    borrow::Cow,
    future::Future,
    ops::ControlFlow,
    path::Path,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

use kagzi_store::StoreError;
use turso::{Builder, Connection, Database};

use crate::{
    db::Db,
    value::{Columns, Row, Value, unreadable},
};

/// Opens or creates the file. All connections of a process come from one `Database`.
pub fn open(path: &Path) -> Result<Database, StoreError> {
    let text = path.to_str().ok_or_else(|| {
        StoreError::Unavailable(format!("{} is not UTF-8; choose another path", path.display()))
    })?;
    let database = wait(Builder::new_local(text).build()).map_err(from_turso)?;
    refuse_without_rowid(&database, path)?;
    Ok(database)
}

/// Turso reads the tables that `sqlite:` makes, and cannot update them: better to say so before anything
/// starts.
fn refuse_without_rowid(database: &Database, path: &Path) -> Result<(), StoreError> {
    const FOUND: &str = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%WITHOUT ROWID%'";
    let db = connect(database)?;
    match db.first(FOUND, &[], |row| row.get::<String>(0))? {
        None => Ok(()),
        Some(_) => Err(StoreError::Unavailable(format!(
            "{0} was made by sqlite:, whose tables Turso cannot write; open it as sqlite:{0}, or choose \
             another file",
            path.display()
        ))),
    }
}

/// The one connection that writes.
pub fn writer(database: &Database) -> Result<Db, StoreError> {
    let db = connect(database)?;
    // As for SQLite. Turso 0.8.3 has no wal_autocheckpoint and no journal_size_limit: it checkpoints every
    // 1,000 pages.
    for setting in [
        "PRAGMA journal_mode = WAL",
        "PRAGMA synchronous = FULL",
        "PRAGMA foreign_keys = OFF",
        "PRAGMA cache_size = -32768",
        "PRAGMA temp_store = MEMORY",
    ] {
        db.each(setting, &[], |_| Ok(()))?;
    }
    Ok(db)
}

/// A connection that only reads.
pub fn reader(database: &Database) -> Result<Db, StoreError> {
    let db = connect(database)?;
    for setting in ["PRAGMA query_only = 1", "PRAGMA cache_size = -4096", "PRAGMA temp_store = MEMORY"] {
        db.each(setting, &[], |_| Ok(()))?;
    }
    Ok(db)
}

fn connect(database: &Database) -> Result<Db, StoreError> {
    let connection = database.connect().map_err(from_turso)?;
    connection.busy_timeout(Duration::from_secs(5)).map_err(from_turso)?;
    Ok(Db::Turso(connection))
}

/// The schema as Turso can keep it: 0.8.3 neither updates, deletes nor indexes tables without a rowid.
pub fn schema(migration: &str) -> Cow<'_, str> {
    Cow::Owned(migration.replace(", WITHOUT ROWID", ""))
}

/// Changes rows, and says how many.
pub fn execute(connection: &Connection, sql: &str, bind: &[Value<'_>]) -> Result<usize, StoreError> {
    let changed = wait(async {
        let mut statement = connection.prepare_cached(sql).await?;
        statement.execute(values(bind)).await
    });
    changed.map(|count| count as usize).map_err(from_turso)
}

/// Shows rows until told to stop.
pub fn rows(
    connection: &Connection,
    sql: &str,
    bind: &[Value<'_>],
    mut see: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>, StoreError>,
) -> Result<(), StoreError> {
    wait(async {
        let mut statement = connection.prepare_cached(sql).await.map_err(from_turso)?;
        let mut rows = statement.query(values(bind)).await.map_err(from_turso)?;
        let mut seen = ControlFlow::Continue(());
        // To the end in any case: Turso may roll a transaction back when a statement is dropped halfway.
        while let Some(found) = rows.next().await.map_err(from_turso)? {
            if seen.is_continue() {
                seen = see(&Row::new(&Found::of(&found)?))?;
            }
        }
        Ok(())
    })
}

/// Several statements without values.
pub fn batch(connection: &Connection, sql: &str) -> Result<(), StoreError> {
    wait(connection.execute_batch(sql)).map_err(from_turso)
}

fn values(bind: &[Value<'_>]) -> Vec<turso::Value> {
    let owned = |value: &Value<'_>| match *value {
        Value::Null => turso::Value::Null,
        Value::Integer(number) => turso::Value::Integer(number),
        Value::Text(text) => turso::Value::Text(text.to_owned()),
        Value::Blob(bytes) => turso::Value::Blob(bytes.to_vec()),
    };
    bind.iter().map(owned).collect()
}

/// Turso hands out copies of values; they are kept here while somebody reads the row.
struct Found(Vec<turso::Value>);

impl Found {
    fn of(row: &turso::Row) -> Result<Self, StoreError> {
        (0..row.column_count())
            .map(|at| row.get_value(at).map_err(from_turso))
            .collect::<Result<_, _>>()
            .map(Found)
    }
}

impl Columns for Found {
    fn value(&self, at: usize) -> Result<Value<'_>, StoreError> {
        match self.0.get(at) {
            Some(turso::Value::Null) => Ok(Value::Null),
            Some(turso::Value::Integer(number)) => Ok(Value::Integer(*number)),
            Some(turso::Value::Text(text)) => Ok(Value::Text(text)),
            Some(turso::Value::Blob(bytes)) => Ok(Value::Blob(bytes)),
            Some(turso::Value::Real(_)) => Err(unreadable(at, "a fraction, which no table of ours holds")),
            None => Err(StoreError::Bug(format!("the row has {} columns, not {}", self.0.len(), at + 1))),
        }
    }
}

/// Sorts an error by what the caller can do about it.
fn from_turso(error: turso::Error) -> StoreError {
    use std::io::ErrorKind;
    use turso::Error;
    let text = error.to_string();
    match error {
        Error::DatabaseFull(_) | Error::IoError(ErrorKind::StorageFull | ErrorKind::QuotaExceeded, _) => {
            StoreError::Full(format!("{text}; free some space, nothing was lost"))
        }
        Error::Busy(_)
        | Error::BusySnapshot(_)
        | Error::Interrupt(_)
        | Error::Readonly(_)
        | Error::IoError(_, _) => StoreError::Unavailable(text),
        Error::NotAdb(_) | Error::Corrupt(_) | Error::ConversionFailure(_) => StoreError::Corrupt(text),
        // Of all constraints the schema has only keys and NOT NULL, and we write no NULL into those.
        Error::Constraint(_) => StoreError::Duplicate(text),
        Error::Error(_)
        | Error::Misuse(_)
        | Error::ToSqlConversionFailure(_)
        | Error::QueryReturnedNoRows
        | Error::BatchStatementFailed { .. }
        | Error::BatchRollbackFailed { .. } => StoreError::Bug(text),
    }
}

/// Drives Turso's futures on the thread that asked: ours has nothing else to do meanwhile, and a runtime
/// cannot be entered twice.
fn wait<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            // With a bound: while it waits for a lock, Turso 0.8.3 wakes nobody and expects to be asked
            // again.
            Poll::Pending => thread::park_timeout(Duration::from_millis(1)),
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{backend, labels, migrate::migrate, reads, runs, schedules, value::bind, workers};

    struct File {
        database: Database,
        _folder: tempfile::TempDir,
    }

    fn file() -> File {
        let folder = tempfile::tempdir().unwrap();
        File { database: open(&folder.path().join("kagzi.turso")).unwrap(), _folder: folder }
    }

    fn migrated() -> (Db, File) {
        let file = file();
        let db = writer(&file.database).unwrap();
        migrate(&db).unwrap();
        (db, file)
    }

    fn statements() -> impl Iterator<Item = &'static kagzi_store::StatementEntry> {
        // Rare housekeeping is not held against the engine.
        let workers = workers::STATEMENTS.iter().filter(|(name, _)| *name != "LONG_OFFLINE");
        let lists = [runs::STATEMENTS, labels::STATEMENTS, backend::STATEMENTS, reads::STATEMENTS];
        lists.into_iter().flatten().chain(workers).chain(schedules::STATEMENTS)
    }

    fn plan(db: &Db, sql: &str) -> String {
        let lines = db.all(&format!("EXPLAIN QUERY PLAN {sql}"), &[], |row| row.get::<String>(3));
        lines.unwrap_or_else(|error| panic!("{error}\n{sql}")).join("\n")
    }

    #[test]
    fn every_statement_can_be_prepared() {
        let (db, _file) = migrated();
        let Db::Turso(connection) = &db else { panic!("a Turso connection") };

        for (name, sql) in statements().chain(reads::COUNTS) {
            if let Err(error) = wait(connection.prepare(sql)) {
                panic!("{name}: {error}\n{sql}");
            }
        }
    }

    #[test]
    fn no_statement_reads_a_whole_table() {
        let (db, _file) = migrated();

        for (name, sql) in statements() {
            for line in plan(&db, sql).lines() {
                let tables = ["runs", "events", "workers", "run_labels", "schedules"];
                let whole = line.trim().strip_prefix("SCAN ").is_some_and(|what| tables.contains(&what));
                assert!(!whole, "{name} reads all rows: {line}\n{sql}");
            }
        }
    }

    #[test]
    fn claims_and_sweeps_use_their_partial_index() {
        let (db, _file) = migrated();
        let wanted = [
            ("DUE", "runs_due"),
            ("NEXT_DUE", "runs_due"),
            ("SWEEP_DUE", "runs_sweep"),
            ("NEXT_SWEEP", "runs_sweep"),
            ("LEASED_BY", "runs_leased"),
            ("STALE_WORKERS", "workers_alive"),
            ("FIND_BUSINESS", "runs_business"),
            ("RUN_BY_BUSINESS", "runs_business"),
            ("WORKER", "runs_leased"),
        ];

        for (wanted, index) in wanted {
            let (_, sql) = statements().find(|(name, _)| *name == wanted).expect("the statement exists");
            let plan = plan(&db, sql);
            assert!(plan.contains(index), "{wanted} does not use {index}: {plan}");
        }
    }

    #[test]
    fn the_settings_that_durability_rests_on_are_in_force() {
        let (db, _file) = migrated();

        assert_eq!(db.first("PRAGMA journal_mode", &[], |row| row.get(0)), Ok(Some("wal".to_owned())));
        // 2 = FULL
        assert_eq!(db.first("PRAGMA synchronous", &[], |row| row.get(0)), Ok(Some(2i64)));
    }

    #[test]
    fn a_reader_cannot_write_and_sees_one_snapshot_while_another_writes() {
        let (db, file) = migrated();
        let reader = reader(&file.database).unwrap();
        db.batch("CREATE TABLE numbers (n INTEGER NOT NULL PRIMARY KEY) STRICT").unwrap();
        let insert = "INSERT INTO numbers VALUES (?1)";
        let count = "SELECT count(*) FROM numbers";

        assert!(reader.execute(insert, bind![1i64]).is_err());
        let seen = reader.transaction(|| {
            let before: Option<i64> = reader.first(count, &[], |row| row.get(0))?;
            db.execute(insert, bind![1i64])?;
            Ok((before, reader.first(count, &[], |row| row.get(0))?))
        });
        assert_eq!(seen, Ok((Some(0), Some(0))));
        assert_eq!(reader.first(count, &[], |row| row.get(0)), Ok(Some(1i64)));
    }

    #[test]
    fn values_come_back_byte_for_byte() {
        let (db, _file) = migrated();
        db.batch("CREATE TABLE all_kinds (number INTEGER, words TEXT, bytes BLOB) STRICT").unwrap();
        let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
        let words = "a\u{0}b ü 😀 'quoted'";

        db.execute("INSERT INTO all_kinds VALUES (?1, ?2, ?3)", bind![i64::MIN, words, bytes]).unwrap();
        let read = db.first("SELECT number, words, bytes FROM all_kinds", &[], |row| {
            Ok((row.get::<i64>(0)?, row.get::<String>(1)?, row.get::<Vec<u8>>(2)?))
        });

        assert_eq!(read, Ok(Some((i64::MIN, words.to_owned(), bytes))));
    }

    #[test]
    fn a_file_that_sqlite_made_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kagzi.db");
        migrate(&crate::sqlite::writer(&path).unwrap()).unwrap();

        let refused = open(&path).expect_err("its tables cannot be written").to_string();

        assert!(refused.contains(&format!("sqlite:{}", path.display())), "{refused}");
    }
}
