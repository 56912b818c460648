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
                 WHEN 'signal' THEN status <> 3 OR lease_worker IS NOT NULL
                 WHEN 'child' THEN status <> 3 OR lease_worker IS NOT NULL
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
    fn broken_promises_about_signals_waits_and_children_are_found_by_name() {
        let (channel, step) = (Name::from("item"), Name::from("wait"));
        let came = |seq, id: &str| {
            event(seq, EventKind::SignalReceived { channel: channel.clone(), id: id.into(), failure: None })
        };
        let took = |seq, step: &str, received| {
            let (step, channel, id) = (step.into(), channel.clone(), "tea".into());
            event(seq, EventKind::WaitEnded { step, position: 1, channel, id, received, failure: None })
        };
        assert_eq!(complaints_with(&[came(3, "tea"), took(4, "wait", Some(3))], ""), [""; 0]);
        assert_eq!(complaints_with(&[came(3, "tea"), came(4, "tea")], ""), ["I14"], "told twice");
        let twice = [came(3, "tea"), took(4, "wait", Some(3)), took(5, "other", Some(3))];
        assert_eq!(complaints_with(&twice, ""), ["I14"], "taken twice");

        let began = || {
            let (step, channel) = (step.clone(), channel.clone());
            event(3, EventKind::WaitBegan { step, position: 1, channel, until: None })
        };
        let waits = vec![step.clone()];
        let parked = EventKind::RunParked { due_at: None, closes: vec![], opens: vec![], waits, wake: None };
        let parked = event(4, parked);
        let state = |step: &str| {
            let wait = kagzi_model::Wait::on(channel.clone(), None);
            serde_json::to_string(&kagzi_model::State::waiting(Some(step.into()), 0, None, wait)).unwrap()
        };
        let waiting =
            |step: &str| format!("UPDATE runs SET status = 3, due_at = NULL, state = '{}'", state(step));
        assert_eq!(complaints_with(&[began(), parked.clone()], &waiting("wait")), [""; 0]);
        assert_eq!(complaints_with(&[began(), parked.clone()], &waiting("another")), ["I15"], "not open");
        let slept_on = [began(), parked.clone(), came(5, "tea")];
        assert_eq!(complaints_with(&slept_on, &waiting("wait")), ["I15"], "it is there, and nobody goes on");
        let leased = format!("{}, status = 2", waiting("wait"));
        assert_eq!(complaints_with(&[began(), parked], &leased), ["I4 "], "its columns disagree");

        let child = |seq, id: u128| {
            let child = RunId(uuid::Uuid::from_u128(id));
            event(
                seq,
                EventKind::ChildStarted {
                    step: step.clone(),
                    position: 1,
                    child,
                    workflow_type: "ship".into(),
                    task_queue: "orders".into(),
                    close: kagzi_model::ClosePolicy::Cancel,
                    awaited: false,
                    until: None,
                    told: false,
                },
            )
        };
        assert_eq!(complaints_with(&[child(3, 7)], ""), [""; 0]);
        assert_eq!(complaints_with(&[child(3, 7), child(4, 8)], ""), ["I16"]);
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
