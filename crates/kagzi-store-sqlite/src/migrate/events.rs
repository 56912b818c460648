//! Rewrites events that were stored one by one and in JSON.
//!
//! In pieces: a file may be large, and a transaction over all of it would need as much again beside it. Each
//! piece takes rows out of the old table and puts them into the new one in one transaction, so that an
//! interruption loses nothing and the next start goes on.

use std::ops::ControlFlow;

use bytes::Bytes;
use kagzi_model::{Event, EventKind, Name, Payload, RunId};
use kagzi_store::{EventRow, StoreError, rows};

use crate::{
    db::Db,
    events,
    value::{Row, bind},
};

/// Events in one transaction, and bytes of their payloads.
const PIECE_EVENTS: usize = 5_000;
const PIECE_BYTES: usize = 8 * 1024 * 1024;

const TABLE: &str = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'events_json'";

// With a limit: Turso reads to the end whatever is done with it.
const OLD: &str = "SELECT run_id, seq, at, detail, payload, content_type
   FROM events_json
  ORDER BY run_id, seq
  LIMIT ?1";

const DELETE_OLD: &str = "DELETE FROM events_json
  WHERE run_id < ?1
     OR (run_id = ?1 AND seq <= ?2)";

/// The old table is there: the rewriting has begun.
pub fn begun(db: &Db) -> Result<bool, StoreError> {
    Ok(db.first(TABLE, &[], |row| row.get::<i64>(0))?.is_some())
}

/// Rewrites what is left. The old table is empty afterwards.
pub fn rewrite(db: &Db) -> Result<(), StoreError> {
    while db.transaction(|| piece(db))? {}
    Ok(())
}

fn piece(db: &Db) -> Result<bool, StoreError> {
    let (mut events, mut bytes) = (Vec::new(), 0);
    db.rows(OLD, bind![PIECE_EVENTS], |row| {
        let event = read(row)?;
        bytes += event.event.payload.as_ref().map_or(0, |payload| payload.data.len());
        events.push(event);
        Ok(if bytes < PIECE_BYTES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    let Some(last) = events.last() else { return Ok(false) };
    events::insert(db, &rows::pack(&events))?;
    db.execute(DELETE_OLD, bind![last.run, last.event.seq])?;
    Ok(true)
}

fn read(row: &Row<'_>) -> Result<EventRow, StoreError> {
    let run: RunId = row.get(0)?;
    let data: Option<Vec<u8>> = row.get(4)?;
    let content_type: Option<Name> = row.get(5)?;
    let payload = data.map(|data| Payload {
        data: Bytes::from(data),
        content_type: content_type.unwrap_or_else(Name::empty),
    });
    let kind = row.text(3, EventKind::from_old_line)?;
    let event = Event { seq: row.get(1)?, at: row.get(2)?, kind, payload };
    // The namespace is the run's here.
    Ok(EventRow { namespace: Name::empty(), run, event })
}
