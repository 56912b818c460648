//! The rows of a SQLite file.

use std::{collections::HashMap, path::Path};

use rusqlite::{Connection, OpenFlags};

use super::rows::{COMPLETED_TOTAL, FAILED_TOTAL, MUST_BE_NONE, Rows, Run, SINCE_SQLITE, by_run, json};
use crate::flat_events;

/// Reads everything, after SQLite itself has found the file sound.
pub fn read(file: &Path) -> Rows {
    let db = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE).expect("the file is there");
    let sound: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("SQLite looks");
    assert_eq!(sound, "ok", "the file is sound");
    let number = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("the schema is known");
    Rows {
        runs: runs(&db),
        events: by_run(flat_events::read(&db)),
        completed_total: number(COMPLETED_TOTAL),
        failed_total: number(FAILED_TOTAL),
        totals_lag: false,
        must_be_none: MUST_BE_NONE
            .iter()
            .map(|(claim, sql)| (*claim, number(&sql.replace("{since}", SINCE_SQLITE))))
            .collect(),
    }
}

const RUNS: &str = "
    SELECT lower(hex(run_id)), workflow_type, status, state, epoch, due_at, sweep_at, \
    lower(hex(lease_worker)),
           finished_at, deadline_at, options, coalesce(first_seq, 1)
    FROM runs";

fn runs(db: &Connection) -> HashMap<String, Run> {
    let mut select = db.prepare(RUNS).expect("the schema is known");
    let rows = select.query_map([], |row| {
        let worker: String = row.get::<_, Option<String>>(7)?.unwrap_or_default();
        Ok(Run {
            id: dashed(&row.get::<_, String>(0)?),
            workflow_type: row.get(1)?,
            status: row.get(2)?,
            state: json(&row.get::<_, String>(3)?),
            epoch: row.get(4)?,
            due_at: row.get(5)?,
            sweep_at: row.get(6)?,
            lease_worker: (!worker.is_empty()).then(|| dashed(&worker)),
            finished_at: row.get(8)?,
            deadline_at: row.get(9)?,
            options: json(&row.get::<_, String>(10)?),
            first_seq: row.get(11)?,
        })
    });
    rows.expect("runs can be read").map(|run| run.map(|run| (run.id.clone(), run)).unwrap()).collect()
}

/// An id as the API writes it.
fn dashed(hex: &str) -> String {
    uuid::Uuid::try_parse(hex).expect("ids are UUIDs").to_string()
}
