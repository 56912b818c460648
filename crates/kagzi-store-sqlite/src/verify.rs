//! Whether a database keeps what we promise: the file itself, and the guarantees that SQL can see.

mod histories;

use std::path::Path;

use kagzi_store::StoreError;

use crate::{db::Db, migrate, sqlite};

/// What was found. A sound database has no complaints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    pub schema: u32,
    pub runs: u64,
    pub events: u64,
    pub complaints: Vec<Complaint>,
}

/// A promise that is broken, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Complaint {
    /// e.g. `I11 events are numbered without a gap`.
    pub promise: &'static str,
    pub count: u64,
    /// What SQLite itself says, or the id of a run as an example.
    pub example: String,
}

/// Reads the whole database, as of one moment; a server may go on writing to it.
pub fn verify(path: &Path) -> Result<Verified, StoreError> {
    if !path.is_file() {
        return Err(StoreError::Unavailable(format!("there is no file {}", path.display())));
    }
    let db = sqlite::reader(path)?;
    db.transaction(|| verify_open(&db))
}

fn verify_open(db: &Db) -> Result<Verified, StoreError> {
    let schema = db.first("PRAGMA user_version", &[], |row| row.get::<u32>(0))?.unwrap_or(0);
    let known = migrate::known();
    if schema == 0 || schema > known {
        return Err(StoreError::Corrupt(format!(
            "it has schema {schema}, and this kagzi knows 1 to {known}: it is no database of Kagzi, or of a \
             newer one"
        )));
    }
    let mut complaints = damages(db)?;
    // A torn file answers queries with nonsense; its runs are not worth counting.
    if !complaints.is_empty() {
        return Ok(Verified { schema, runs: 0, events: 0, complaints });
    }
    for (promise, sql) in PROMISES {
        let broken = db.all(sql, &[], |row| row.get::<String>(0))?;
        if let Some(example) = broken.first() {
            let example = format!("run {}", as_uuid(example));
            complaints.push(Complaint { promise, count: broken.len() as u64, example });
        }
    }
    complaints.extend(histories::complaints(db)?);
    complaints.sort_by_key(|complaint| complaint.promise);
    let count =
        |sql: &str| db.first(sql, &[], |row| row.get::<i64>(0)).map(|n| n.unwrap_or(0).cast_unsigned());
    Ok(Verified {
        schema,
        runs: count("SELECT count(*) FROM runs")?,
        events: count("SELECT coalesce(sum(length(kinds)), 0) FROM events")?,
        complaints,
    })
}

fn damages(db: &Db) -> Result<Vec<Complaint>, StoreError> {
    let said = db.all("PRAGMA integrity_check", &[], |row| row.get::<String>(0))?;
    let damages: Vec<String> = said.into_iter().filter(|line| line != "ok").collect();
    let promise = "the file is sound";
    let count = damages.len() as u64;
    Ok(damages.into_iter().next().map(|example| Complaint { promise, count, example }).into_iter().collect())
}

/// Each finds the runs that break it, as hexadecimal ids. Statuses 4 to 7 are ends. A state that this version
/// does not know is not judged.
const PROMISES: &[(&str, &str)] = &[
    (
        "I4 a living run has one reason to wake, and its columns agree with it",
        "SELECT hex(run_id)
         FROM runs
         WHERE status NOT BETWEEN 4 AND 7
           AND (json_extract(state, '$.is') IS NULL
             OR CASE json_extract(state, '$.is')
                 WHEN 'ready' THEN status <> 1 OR due_at IS NULL OR lease_worker IS NOT NULL
                 WHEN 'retry' THEN status <> 1 OR due_at IS NULL OR lease_worker IS NOT NULL
                 WHEN 'timer' THEN status <> 3 OR due_at IS NULL OR lease_worker IS NOT NULL
                 WHEN 'leased' THEN status <> 2 OR due_at IS NOT NULL OR lease_worker IS NULL
                 WHEN 'paused' THEN status <> 8 OR due_at IS NOT NULL OR lease_worker IS NOT NULL
                 WHEN 'completed' THEN 1
                 WHEN 'failed' THEN 1
                 WHEN 'cancelled' THEN 1
                 WHEN 'timed_out' THEN 1
                 ELSE 0
             END)",
    ),
    (
        "I4 an ended run waits for nothing",
        "SELECT hex(run_id)
         FROM runs
         WHERE status BETWEEN 4 AND 7
           AND (due_at IS NOT NULL OR lease_worker IS NOT NULL OR finished_at IS NULL)",
    ),
    (
        "I11 every run has a history",
        "SELECT hex(r.run_id)
         FROM runs AS r
         WHERE NOT EXISTS (SELECT 1 FROM events AS e WHERE e.run_id = r.run_id)",
    ),
];

fn as_uuid(hex: &str) -> String {
    uuid::Uuid::try_parse(hex).map_or_else(|_| hex.to_owned(), |id| id.to_string())
}

#[cfg(test)]
mod tests {
    use kagzi_model::{Event, EventKind, Name, RunId, Timestamp};
    use kagzi_store::EventRow;

    use super::*;

    const RUN: &str = "
        INSERT INTO runs (namespace_id, run_id, workflow_type, task_queue, status, state, version, epoch, \
        due_at,
            attempts, dispatch_count, crashes, created_at, finished_at, options)
        VALUES ('default', x'00000000000000000000000000000001', 'order', 'orders', 1, \
        '{\"is\":\"ready\",\"since\":1}', 0, 0,
            1, 0, 0, 0, 1, NULL, '{}');
";

    fn event(seq: u64, kind: EventKind) -> EventRow {
        let event = Event { seq, at: Timestamp(1), kind, payload: None };
        EventRow { namespace: Name::from("default"), run: RunId(uuid::Uuid::from_u128(1)), event }
    }

    fn result(seq: u64) -> EventRow {
        let step = Name::from("charge");
        event(seq, EventKind::StepCompleted { step, position: 0, attempt: 1, elapsed_ms: 0 })
    }

    /// A run with a history of two events in a row each, and more.
    fn complaints_with(more: &[EventRow], change: &str) -> Vec<&'static str> {
        let db = Db::Sqlite(rusqlite::Connection::open_in_memory().unwrap());
        migrate::migrate(&db).unwrap();
        db.batch(RUN).unwrap();
        for row in [event(1, EventKind::RunStarted), result(2)].iter().chain(more) {
            crate::events::write(&db, std::slice::from_ref(row)).unwrap();
        }
        db.batch(change).unwrap();
        verify_open(&db).unwrap().complaints.into_iter().map(|complaint| &complaint.promise[..3]).collect()
    }

    fn complaints(change: &str) -> Vec<&'static str> {
        complaints_with(&[], change)
    }

    #[test]
    fn a_sound_database_has_no_complaints() {
        assert_eq!(complaints(""), [""; 0]);
    }

    #[test]
    fn every_broken_promise_is_found_by_name() {
        assert_eq!(complaints("UPDATE runs SET status = 4, due_at = NULL, finished_at = 2"), ["I1 "]);
        let failure = kagzi_model::Failure::new("A", "b");
        let end = [event(3, EventKind::RunFailed { failure, step: None, by: None })];
        assert_eq!(complaints_with(&end, ""), ["I1 "], "an end without an ended run");
        let ended = "UPDATE runs SET status = 4, due_at = NULL, finished_at = 2";
        assert_eq!(complaints_with(&end, ended), ["I1 "], "failed in the history, completed in the row");
        assert_eq!(complaints_with(&[result(3)], ""), ["I2 "]);
        assert_eq!(complaints("UPDATE runs SET due_at = NULL"), ["I4 "]);
        assert_eq!(complaints("UPDATE runs SET state = '{\"is\":\"failed\"}'"), ["I4 "]);
        assert_eq!(complaints("DELETE FROM events WHERE first_seq = 1"), ["I11"]);
        assert_eq!(complaints("UPDATE events SET first_seq = 3 WHERE first_seq = 2"), ["I11"]);
        assert_eq!(complaints("UPDATE events SET detail = x'0177' WHERE first_seq = 2"), ["I11"]);
        assert_eq!(complaints("UPDATE events SET detail = x'0100' WHERE first_seq = 2"), ["I11"], "no step");
        let newer = "UPDATE events SET kinds = x'C8' WHERE first_seq = 2";
        assert_eq!(complaints(newer), [""; 0], "a kind of a newer version is no damage");
        assert_eq!(complaints("DELETE FROM events"), ["I11"]);
    }

    #[test]
    fn what_is_no_database_of_ours_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.db");
        assert!(verify(&file).unwrap_err().to_string().contains("there is no file"));

        std::fs::write(&file, "x".repeat(5000)).unwrap();
        assert!(matches!(verify(&file), Err(StoreError::Damaged(_))));

        std::fs::remove_file(&file).unwrap();
        rusqlite::Connection::open(&file).unwrap().execute_batch("CREATE TABLE cats (name)").unwrap();
        assert!(verify(&file).unwrap_err().to_string().contains("no database of Kagzi"));
    }
}
