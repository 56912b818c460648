//! Rewrites events that were stored one by one and in JSON.
//!
//! In pieces, each in a transaction of its own: rows leave the old table and enter the new one together, so
//! that an interruption loses nothing and the next start goes on.

use bytes::Bytes;
use kagzi_model::{Event, EventKind, Name, Payload, RunId, Timestamp};
use kagzi_store::{EventRow, StoreError};
use tokio_postgres::{
    Row,
    types::{ToSql, Type},
};

use crate::{error::from_postgres, events, row, session::Session, unnamed::Typed};

/// Events in one transaction, and bytes of their payloads.
const PIECE_EVENTS: i64 = 5_000;
const PIECE_BYTES: i64 = 8 * 1024 * 1024;

/// The types of `INSERT_EVENTS`' values.
const COLUMN_TYPES: [Type; 7] = [
    Type::TEXT_ARRAY,
    Type::UUID_ARRAY,
    Type::INT8_ARRAY,
    Type::INT8_ARRAY,
    Type::BYTEA_ARRAY,
    Type::BYTEA_ARRAY,
    Type::BYTEA_ARRAY,
];

const TAKE_OLD: &str = "DELETE FROM kagzi.events_json AS old
  USING (SELECT namespace_id, run_id, seq
           FROM (SELECT namespace_id, run_id, seq,
                        SUM(COALESCE(octet_length(payload), 0)) OVER (ORDER BY namespace_id, run_id, seq)
                        - COALESCE(octet_length(payload), 0) AS before
                   FROM (SELECT namespace_id, run_id, seq, payload
                           FROM kagzi.events_json
                          ORDER BY namespace_id, run_id, seq
                          LIMIT $1) AS piece
                ) AS sized
          WHERE before <= $2) AS taken
  WHERE old.namespace_id = taken.namespace_id
    AND old.run_id = taken.run_id
    AND old.seq = taken.seq
RETURNING old.namespace_id, old.run_id, old.seq, old.at, old.detail, old.payload, old.content_type";

/// Rewrites a piece, within the transaction that is open. False when nothing was left.
pub async fn piece(session: &Session) -> Result<bool, StoreError> {
    // With named types, since behind a pooler nothing may be prepared within the transaction.
    let limits: Typed<'_> = &[(&PIECE_EVENTS, Type::INT8), (&PIECE_BYTES, Type::INT8)];
    let found = session.query_once(TAKE_OLD, limits).await.map_err(from_postgres)?;
    let mut taken = found.iter().map(read).collect::<Result<Vec<EventRow>, StoreError>>()?;
    if taken.is_empty() {
        session.execute("DROP TABLE kagzi.events_json").await.map_err(from_postgres)?;
        return Ok(false);
    }
    taken.sort_unstable_by_key(|row| (row.run, row.event.seq));
    let packed = events::packed(&taken);
    let columns = events::columns(&packed);
    let bind: Vec<(&(dyn ToSql + Sync), Type)> =
        columns.iter().map(|column| &**column as &(dyn ToSql + Sync)).zip(COLUMN_TYPES).collect();
    session.query_once(events::INSERT_EVENTS, &bind).await.map_err(from_postgres)?;
    Ok(true)
}

fn read(found: &Row) -> Result<EventRow, StoreError> {
    let data: Option<&[u8]> = row::get(found, 5)?;
    let content_type: Option<&str> = row::get(found, 6)?;
    let payload = data.map(|data| Payload {
        data: Bytes::copy_from_slice(data),
        content_type: content_type.map_or_else(Name::empty, Name::from),
    });
    let event = Event {
        seq: row::get::<i64>(found, 2)?.cast_unsigned(),
        at: Timestamp(row::get(found, 3)?),
        kind: EventKind::from_old_line(row::get(found, 4)?),
        payload,
    };
    Ok(EventRow { namespace: row::name(found, 0)?, run: RunId(row::get(found, 1)?), event })
}
