//! The table of events: one row per run and commit.

use std::ops::ControlFlow;

use bytes::Bytes;
use kagzi_model::{Aggregate, Kind, Name, Payload, Run, RunId};
use kagzi_store::{
    EventOutline, EventPiece, EventRequest, EventRow, Reading, StoreError,
    listing::{EventRows, SQLITE},
    rows::{self, PackedRow, StoredRow},
};

use crate::{
    db::Db,
    reads::bound,
    value::{Row, bind},
};

kagzi_store::statements! {
/// Every fixed statement about events; a test prepares each on a real database.
STATEMENTS:

pub const INSERT_EVENTS: &str = "INSERT INTO events (run_id, first_seq, at, kinds, detail, payload)
 VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

// Without payloads: deciding never looks at them. From the beginning of the living generation.
const LOAD_EVENTS: &str = "SELECT first_seq, at, kinds, detail
   FROM events
  WHERE run_id = ?1
    AND first_seq >= ?2
  ORDER BY first_seq";

const INPUT: &str = "SELECT kinds, detail, payload
   FROM events
  WHERE run_id = ?1
    AND first_seq = ?2";

// A completed run ends with its output, so nearly always the last row has it. 13 = run_completed.
const OUTPUT: &str = "SELECT first_seq, at, kinds, detail, payload
   FROM events
  WHERE run_id = ?1
    AND instr(kinds, x'0D') > 0
  ORDER BY first_seq DESC
  LIMIT 1";

// The row that holds an event begins with it or before it.
const HOLDING: &str = "SELECT first_seq, at, kinds, detail, payload
   FROM events
  WHERE run_id = ?1
    AND first_seq <= ?2
    AND EXISTS (SELECT 1 FROM runs WHERE runs.run_id = ?1 AND runs.namespace_id = ?3)
  ORDER BY first_seq DESC
  LIMIT 1";
}

/// The columns of a row without its payloads, as [`stored`] reads them.
const HEAD: &str = "first_seq, at, kinds, detail";
const WHOLE: &str = "first_seq, at, kinds, detail, payload";
/// Where the payloads are among the columns of a whole row.
const PAYLOAD: usize = 4;

/// Writes the events of a batch.
pub fn write(db: &Db, events: &[EventRow]) -> Result<(), StoreError> {
    if events.is_empty() {
        return Ok(());
    }
    insert(db, &rows::pack(events))
}

/// Writes rows.
pub fn insert(db: &Db, rows: &[PackedRow]) -> Result<(), StoreError> {
    let mut insert = db.statement(INSERT_EVENTS)?;
    for row in rows {
        let PackedRow { run, first_seq, at, kinds, detail, payload, .. } = row;
        insert.execute(bind![run, first_seq, at, kinds, detail, payload.as_deref()])?;
    }
    Ok(())
}

/// Reads a row without its payloads: first_seq, at, kinds, detail.
pub fn stored<'r>(row: &Row<'r>) -> Result<StoredRow<'r>, StoreError> {
    Ok(StoredRow { first_seq: row.get(0)?, at: row.get(1)?, kinds: row.bytes(2)?, detail: row.bytes(3)? })
}

fn payloads(row: &Row<'_>, at: usize) -> Result<Bytes, StoreError> {
    Ok(row.get::<Option<Vec<u8>>>(at)?.map(Bytes::from).unwrap_or_default())
}

/// Takes the living generation into a run that is being loaded.
pub fn load(db: &Db, aggregate: &mut Aggregate) -> Result<(), StoreError> {
    let (id, from) = (aggregate.run.id, aggregate.run.first_seq);
    db.each(LOAD_EVENTS, bind![id, from], |row| rows::absorb(aggregate, &stored(row)?))
}

/// The input, from the columns of a generation's first row: kinds, detail, payload.
pub fn input(row: &Row<'_>, at: usize) -> Result<Option<Payload>, StoreError> {
    let first = StoredRow {
        first_seq: 1,
        at: kagzi_model::Timestamp(0),
        kinds: row.bytes(at)?,
        detail: row.bytes(at + 1)?,
    };
    first.first_payload(&payloads(row, at + 2)?)
}

/// The input of a run's living generation, and its output. What cannot be read is left out: the run is shown all the same, and
/// its history says what is wrong.
pub fn ends(db: &Db, run: &Run) -> Result<(Option<Payload>, Option<Payload>), StoreError> {
    let (run, first_seq, finished) = (run.id, run.first_seq, run.state.finished());
    let readable = |found: Result<Option<Option<Payload>>, StoreError>| match found {
        Ok(found) => Ok(found.flatten()),
        Err(StoreError::Corrupt(_)) => Ok(None),
        Err(other) => Err(other),
    };
    let given = readable(db.first(INPUT, bind![run, first_seq], |row| input(row, 0)))?;
    let output =
        |row: &Row<'_>| stored(row)?.last_payload(Kind::RunCompleted as u8, &payloads(row, PAYLOAD)?);
    let output = if finished { readable(db.first(OUTPUT, bind![run], output))? } else { None };
    Ok((given, output))
}

/// Stops at the first event that is too much. Payloads are read of those rows only that have a wanted one.
pub fn history(
    db: &Db,
    namespace: &Name,
    run: RunId,
    request: &EventRequest,
) -> Result<EventPiece, StoreError> {
    let wanted = EventRows::of(namespace, run, request).select(SQLITE, WHOLE);
    let mut reading = Reading::new(request);
    db.rows(&wanted.sql, &bound(&wanted), |row| {
        let head = stored(row)?;
        let went = reading.row(&head)?;
        if reading.lacks() {
            reading.payloads(head.first_seq, &payloads(row, PAYLOAD)?)?;
        }
        Ok(went)
    })?;
    Ok(reading.done())
}

/// Events without their payloads.
pub fn outline(
    db: &Db,
    namespace: &Name,
    run: RunId,
    after_seq: u64,
    limit: usize,
) -> Result<Vec<EventOutline>, StoreError> {
    let range = after_seq.saturating_add(1)..u64::MAX;
    let wanted = EventRows { namespace, run, range, kinds: &[], upwards: true, limit: Some(limit) };
    let wanted = wanted.select(SQLITE, HEAD);
    let mut lines = Vec::new();
    db.rows(&wanted.sql, &bound(&wanted), |row| rows::outline(&stored(row)?, after_seq, limit, &mut lines))?;
    Ok(lines)
}

/// The payloads of these events, which are in order or nearly so: a row is read once for neighbours.
pub fn payloads_of(
    db: &Db,
    namespace: &Name,
    run: RunId,
    seqs: &[u64],
) -> Result<Vec<(u64, Payload)>, StoreError> {
    let mut found = Vec::with_capacity(seqs.len());
    let mut rest = seqs;
    while let [next, ..] = rest {
        let read = db.first(HOLDING, bind![run, next, namespace], |row| {
            rows::payloads(&stored(row)?, &payloads(row, PAYLOAD)?, rest, &mut found)
        })?;
        rest = &rest[read.unwrap_or(1).max(1)..];
    }
    Ok(found)
}

/// Shows every row of every history, run by run and in order.
pub fn each_row(
    db: &Db,
    mut see: impl FnMut(RunId, &StoredRow<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let all = format!("SELECT {HEAD}, run_id FROM events ORDER BY run_id, first_seq");
    db.rows(&all, &[], |row| {
        see(row.get(4)?, &stored(row)?)?;
        Ok(ControlFlow::Continue(()))
    })
}
