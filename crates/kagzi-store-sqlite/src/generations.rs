//! Runs that continue in place: where their living generation begins, and deleting what lies before.

use kagzi_model::RunId;
use kagzi_store::{Continued, OLD_ROWS_MAX, RunKey, StoreError};

use crate::{
    db::Db,
    value::{bind, json, unreadable},
};

const BEGIN_GENERATION: &str = "UPDATE runs
    SET generation = ?2, first_seq = ?3
  WHERE run_id = ?1";

const NOTE_OLD: &str = "INSERT OR REPLACE INTO old_generations (run_id, below, kept) VALUES (?1, ?2, ?3)";

const NEXT_OLD: &str = "SELECT run_id, below, kept FROM old_generations ORDER BY run_id LIMIT 1";

// The first row stays.
const OLD_ROWS: &str = "SELECT first_seq, length(kinds)
   FROM events
  WHERE run_id = ?1
    AND first_seq > 1
    AND first_seq < ?2
  ORDER BY first_seq
  LIMIT ?3";

const DELETE_OLD_ROW: &str = "DELETE FROM events WHERE run_id = ?1 AND first_seq = ?2";

const FORGET_OLD: &str = "DELETE FROM old_generations WHERE run_id = ?1";

/// Every statement about generations; a test prepares each on a real database.
pub const STATEMENTS: &[(&str, &str)] = &[
    ("BEGIN_GENERATION", BEGIN_GENERATION),
    ("NOTE_OLD", NOTE_OLD),
    ("NEXT_OLD", NEXT_OLD),
    ("OLD_ROWS", OLD_ROWS),
    ("DELETE_OLD_ROW", DELETE_OLD_ROW),
    ("FORGET_OLD", FORGET_OLD),
];

/// Writes where generations begin, and deletes of what lies before as much as a commit may.
pub fn write(db: &Db, continued: &[Continued]) -> Result<(), StoreError> {
    for each in continued {
        let run = each.run.id;
        db.execute(BEGIN_GENERATION, bind![run, each.generation, each.first_seq])?;
        let deleted = delete(db, each, OLD_ROWS_MAX)?;
        if deleted < OLD_ROWS_MAX {
            db.execute(FORGET_OLD, bind![run])?;
        } else {
            db.execute(NOTE_OLD, bind![run, each.below, json(&each.kept)])?;
        }
    }
    Ok(())
}

/// Deletes up to `limit` rows of old generations, and says how many.
pub fn purge(db: &Db, limit: usize) -> Result<usize, StoreError> {
    let mut purged = 0;
    while purged < limit {
        let next = db.first(NEXT_OLD, &[], |row| {
            let kept: String = row.get(2)?;
            let kept: Vec<u64> = serde_json::from_str(&kept).map_err(|error| unreadable(2, error))?;
            Ok((row.get::<RunId>(0)?, row.get::<u64>(1)?, kept))
        })?;
        let Some((id, below, kept)) = next else { break };
        let run = RunKey { id, namespace: kagzi_model::Name::empty() };
        let left = limit - purged;
        let deleted = delete(db, &Continued { run, generation: 0, first_seq: below, below, kept }, left)?;
        purged += deleted;
        if deleted < left {
            db.execute(FORGET_OLD, bind![id])?;
        }
    }
    Ok(purged)
}

/// Deletes rows of one run until there are none or these are enough.
fn delete(db: &Db, old: &Continued, limit: usize) -> Result<usize, StoreError> {
    let run = old.run.id;
    // Each kept event keeps one row at the most.
    let read = limit + old.kept.len();
    let rows = db.all(OLD_ROWS, bind![run, old.below, read], |row| {
        let first: u64 = row.get(0)?;
        Ok(first..first + row.get::<u64>(1)?)
    })?;
    let mut delete = db.statement(DELETE_OLD_ROW)?;
    let mut deleted = 0;
    for row in rows.iter().filter(|row| old.drops(row)).take(limit) {
        deleted += delete.execute(bind![run, row.start])?;
    }
    Ok(deleted)
}
