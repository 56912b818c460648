//! Events one by one, for tests that look at histories or damage them by SQL.
//!
//! A server stores one row per run and commit, in binary. Here the same is a table `flat_events (run_id, seq,
//! at, kind, step, detail, payload)` with details in JSON, beside the real one; what is changed in it can be
//! written back.

pub mod postgres;

use bytes::Bytes;
use kagzi_model::{Event, EventKind, Name, Payload, RunId, Timestamp};
use kagzi_store::{
    EventRow,
    rows::{Line, PackedRow, StoredRow, pack},
};
use rusqlite::Connection;
use uuid::Uuid;

/// A row of the table of events, read whole.
pub(crate) struct WholeRow {
    pub run: Uuid,
    pub namespace: String,
    pub first_seq: i64,
    pub at: i64,
    pub kinds: Vec<u8>,
    pub detail: Vec<u8>,
    pub payload: Option<Vec<u8>>,
}

impl WholeRow {
    /// The events in it. Panics when they cannot be read.
    pub(crate) fn events(self) -> Vec<EventRow> {
        let WholeRow { run, namespace, first_seq, at, kinds, detail, payload } = self;
        let payloads = Bytes::from(payload.unwrap_or_default());
        let first_seq = u64::try_from(first_seq).expect("sequence numbers are positive");
        let row = StoredRow { first_seq, at: Timestamp(at), kinds: &kinds, detail: &detail };
        let event = |line: Line| {
            let payload = line.payload.map(|place| place.cut(&payloads).expect("the payload is whole"));
            Event { payload, ..line.event }
        };
        row.lines()
            .map(|line| EventRow {
                namespace: Name::from(namespace.as_str()),
                run: RunId(run),
                event: event(line.unwrap_or_else(|error| panic!("I11: run {run}: {error}"))),
            })
            .collect()
    }
}

/// An event that was read from the flat table.
pub(crate) struct FlatEvent {
    pub run: Uuid,
    pub namespace: String,
    pub seq: i64,
    pub at: i64,
    pub detail: String,
    pub payload: Option<Vec<u8>>,
}

/// Rows of the real table again. What follows a gap begins a row, as it would have been written.
pub(crate) fn packed(flat: Vec<FlatEvent>) -> Vec<PackedRow> {
    let event = |flat: FlatEvent| EventRow {
        namespace: Name::from(flat.namespace.as_str()),
        run: RunId(flat.run),
        event: Event {
            seq: u64::try_from(flat.seq).expect("sequence numbers are positive"),
            at: Timestamp(flat.at),
            kind: EventKind::from_json(&flat.detail).expect("an event"),
            payload: flat.payload.map(|data| Payload::new(Bytes::from(data))),
        },
    };
    pack(&flat.into_iter().map(event).collect::<Vec<_>>())
}

const CREATE: &str =
    "CREATE TABLE flat_events (run_id BLOB, seq INTEGER, at INTEGER, kind INTEGER, step TEXT,
                                                detail TEXT, payload BLOB)";

/// Reads all events of a SQLite file, in order.
pub(crate) fn read(db: &Connection) -> Vec<EventRow> {
    let sql = "SELECT run_id, first_seq, at, kinds, detail, payload FROM events ORDER BY run_id, first_seq";
    let mut select = db.prepare(sql).expect("the schema is known");
    let rows = select.query_map([], |row| {
        Ok(WholeRow {
            run: id(row)?,
            namespace: String::new(),
            first_seq: row.get(1)?,
            at: row.get(2)?,
            kinds: row.get(3)?,
            detail: row.get(4)?,
            payload: row.get(5)?,
        })
    });
    rows.expect("events can be read").flat_map(|row| row.expect("events can be read").events()).collect()
}

fn id(row: &rusqlite::Row<'_>) -> rusqlite::Result<Uuid> {
    Ok(Uuid::from_slice(&row.get::<_, Vec<u8>>(0)?).expect("ids are UUIDs"))
}

/// Makes the flat table in a SQLite file.
pub fn flatten(db: &Connection) {
    db.execute_batch(CREATE).expect("there is none yet");
    let mut insert = db.prepare("INSERT INTO flat_events VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)").unwrap();
    for EventRow { run, event, .. } in read(db) {
        let step = event.kind.step().map(|(step, _)| step.to_string());
        let payload = event.payload.as_ref().map(|payload| payload.data.to_vec());
        let (seq, number) = (event.seq.cast_signed(), event.kind.number());
        insert
            .execute((run.0.as_bytes(), seq, event.at.0, number, step, event.kind.to_json(), payload))
            .unwrap();
    }
}

/// Writes back what was changed in the flat table of a SQLite file, and removes it.
pub fn unflatten(db: &Connection) {
    let sql = "SELECT run_id, seq, at, detail, payload FROM flat_events ORDER BY run_id, seq";
    let mut select = db.prepare(sql).unwrap();
    let flat = select.query_map([], |row| {
        Ok(FlatEvent {
            run: id(row)?,
            namespace: String::new(),
            seq: row.get(1)?,
            at: row.get(2)?,
            detail: row.get(3)?,
            payload: row.get(4)?,
        })
    });
    let flat = flat.unwrap().collect::<Result<Vec<_>, _>>().unwrap();
    drop(select);
    db.execute_batch("DELETE FROM events; DROP TABLE flat_events").unwrap();
    let mut insert = db.prepare("INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5, ?6)").unwrap();
    for row in packed(flat) {
        let payload = row.payload.as_deref();
        insert
            .execute((
                row.run.0.as_bytes(),
                row.first_seq.cast_signed(),
                row.at.0,
                row.kinds,
                row.detail,
                payload,
            ))
            .unwrap();
    }
}
