//! Migrations only go forward, each in its own transaction, and are never edited after a release.

mod events;

use kagzi_store::StoreError;

use crate::db::Db;

const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_runs_events_workers.sql"),
    include_str!("../migrations/0002_labels.sql"),
    include_str!("../migrations/0003_schedules.sql"),
    include_str!("../migrations/0004_namespaces_gates.sql"),
    include_str!("../migrations/0005_listing.sql"),
    include_str!("../migrations/0006_scheduled_by_end.sql"),
    include_str!("../migrations/0007_failure_handlers.sql"),
    EVENTS_BY_COMMIT,
    include_str!("../migrations/0009_levels.sql"),
    include_str!("../migrations/0010_worker_versions.sql"),
    include_str!("../migrations/0011_generations.sql"),
    include_str!("../migrations/0012_nouns.sql"),
    include_str!("../migrations/0013_people.sql"),
    include_str!("../migrations/0014_events_published.sql"),
];

/// Its rows are rewritten before it counts as done.
const EVENTS_BY_COMMIT: &str = include_str!("../migrations/0008_events_by_commit.sql");

/// The newest schema that this version can read.
pub fn known() -> u32 {
    MIGRATIONS.len() as u32
}

/// Up to which level events may be written here.
pub fn kinds_level(db: &Db) -> Result<u8, StoreError> {
    let level = db.first("SELECT level FROM levels WHERE name = 'kinds'", &[], |row| row.get(0))?;
    level.ok_or_else(|| StoreError::Corrupt("the table of levels has no row for kinds".into()))
}

/// Brings the file up to date. A file written by a newer Kagzi is refused, never downgraded.
pub fn migrate(db: &Db) -> Result<(), StoreError> {
    let have = db.first("PRAGMA user_version", &[], |row| row.get::<u32>(0))?.unwrap_or(0) as usize;
    if have > MIGRATIONS.len() {
        return Err(StoreError::Unavailable(format!(
            "the database has schema {have}, this kagzi knows {}; use the newer kagzi that wrote it",
            MIGRATIONS.len()
        )));
    }
    for (number, migration) in MIGRATIONS.iter().enumerate().skip(have) {
        let done = format!("PRAGMA user_version = {}", number + 1);
        if *migration == EVENTS_BY_COMMIT {
            if !events::begun(db)? {
                db.transaction(|| db.batch(&db.schema(migration)))?;
            }
            events::rewrite(db)?;
            db.transaction(|| db.batch(&format!("DROP TABLE events_json; {done}")))?;
            continue;
        }
        db.transaction(|| {
            db.batch(&db.schema(migration))?;
            db.batch(&done)
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Db {
        Db::Sqlite(rusqlite::Connection::open_in_memory().unwrap())
    }

    #[test]
    fn a_newer_schema_is_refused_with_what_to_do() {
        let db = empty();
        db.batch("PRAGMA user_version = 999").unwrap();

        let error = migrate(&db).unwrap_err().to_string();

        assert!(error.contains("schema 999") && error.contains("newer kagzi"), "{error}");
    }

    /// A database of the schema before, with what its events said.
    fn with_events_in_json(events: &[&str]) -> Db {
        let db = empty();
        for migration in &MIGRATIONS[..7] {
            db.batch(migration).unwrap();
        }
        db.batch("PRAGMA user_version = 7").unwrap();
        db.batch(&format!("INSERT INTO events VALUES {}", events.join(", "))).unwrap();
        db
    }

    fn lines(db: &Db) -> Vec<(u64, i64, String, Option<Vec<u8>>)> {
        let mut lines = Vec::new();
        db.each(
            "SELECT first_seq, at, kinds, detail, payload FROM events ORDER BY run_id, first_seq",
            &[],
            |row| {
                let payloads = bytes::Bytes::from(row.get::<Option<Vec<u8>>>(4)?.unwrap_or_default());
                for line in crate::events::stored(row)?.lines() {
                    let kagzi_store::rows::Line { event, payload } = line?;
                    let payload = payload.map(|place| place.cut(&payloads).unwrap().data.to_vec());
                    lines.push((event.seq, event.at.0, event.kind.to_json(), payload));
                }
                Ok(())
            },
        )
        .unwrap();
        lines
    }

    const STARTED: &str =
        "(x'00000000000000000000000000000001', 1, 10, 1, NULL, '{\"event\":\"run_started\"}', x'7b7d', NULL)";
    const RECORDED: &str = "(x'00000000000000000000000000000001', 2, 11, 4, 'a', \
                            '{\"event\":\"step_completed\",\"step\":\"a\",\"position\":0,\"attempt\":1}', \
                            x'31', 'text/plain')";
    const NEWER: &str = "(x'00000000000000000000000000000002', 1, 12, 99, NULL, \
                         '{\"event\":\"signalled\",\"by\":\"ann\"}', x'3233', NULL)";
    const DAMAGED: &str = "(x'00000000000000000000000000000002', 2, 13, 1, NULL, 'noise', NULL, NULL)";

    #[test]
    fn events_in_json_are_rewritten_and_none_is_lost_not_even_one_that_nobody_understands() {
        let db = with_events_in_json(&[STARTED, RECORDED, NEWER, DAMAGED]);

        migrate(&db).unwrap();

        let line = |text: &str| text.to_owned();
        let recorded = r#"{"event":"step_completed","step":"a","position":0,"attempt":1}"#;
        let newer = r#"{"event":"signalled","by":"ann"}"#;
        assert_eq!(
            lines(&db),
            [
                (1, 10, line(r#"{"event":"run_started"}"#), Some(b"{}".to_vec())),
                (2, 11, line(recorded), Some(b"1".to_vec())),
                (1, 12, line(newer), Some(b"23".to_vec())),
                (2, 13, line(r#"{"event":"kind 0","number":0,"record":"0a056e6f6973656801"}"#), None),
            ]
        );
        assert!(!events::begun(&db).unwrap(), "the old table is gone");
    }

    #[test]
    fn a_rewriting_that_was_interrupted_goes_on_where_it_stopped() {
        let db = with_events_in_json(&[STARTED, RECORDED]);
        // The new table is there and has the first event; the process ended before the second.
        db.batch(EVENTS_BY_COMMIT).unwrap();
        let taken =
            "INSERT INTO events VALUES (x'00000000000000000000000000000001', 1, 10, x'01', x'0100', NULL);
            DELETE FROM events_json WHERE seq = 1";
        db.batch(taken).unwrap();

        migrate(&db).unwrap();

        assert_eq!(lines(&db).iter().map(|(seq, ..)| *seq).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(db.first("PRAGMA user_version", &[], |row| row.get::<u32>(0)).unwrap(), Some(known()));
    }

    #[test]
    fn migrating_twice_changes_nothing() {
        let db = empty();

        migrate(&db).unwrap();
        migrate(&db).unwrap();
    }
}
