//! The table of events: one row per run and commit.

use bytes::Bytes;
use kagzi_model::{Aggregate, Kind, Name, Payload, RunId, Timestamp};
use kagzi_store::{
    EventOutline, EventPiece, EventRequest, EventRow, Reading, StoreError,
    listing::{EventRows, POSTGRES, Statement, Value},
    rows::{self, PackedRow, StoredRow},
};
use tokio_postgres::Row;

use crate::{
    error::from_postgres,
    reads::{query, seq},
    row,
    session::Session,
    write::{Columns, column},
};

kagzi_store::statements! {
/// The fixed statements by which events are written and loaded; a test prepares each on a real database.
WRITE_STATEMENTS:

// In id order, as rows are always locked.
pub const INSERT_EVENTS: &str =
    "INSERT INTO kagzi.events (namespace_id, run_id, first_seq, at, kinds, detail, payload)
 SELECT *
   FROM unnest($1::text[], $2::uuid[], $3::bigint[], $4::bigint[], $5::bytea[], $6::bytea[], $7::bytea[])";

// Without payloads: deciding never looks at them. From the beginning of the living generation; the runs are
// locked by then, so none begins in between.
pub const LOAD_EVENTS: &str = "SELECT events.first_seq, events.at, events.kinds, events.detail, events.run_id
   FROM unnest($1::text[], $2::uuid[]) AS wanted (namespace_id, run_id)
   JOIN kagzi.runs ON runs.namespace_id = wanted.namespace_id AND runs.run_id = wanted.run_id
   JOIN kagzi.events
     ON events.namespace_id = wanted.namespace_id
    AND events.run_id = wanted.run_id
    AND events.first_seq >= coalesce(runs.first_seq, 1)
  ORDER BY events.run_id, events.first_seq";
}

kagzi_store::statements! {
/// Those by which events are shown.
READ_STATEMENTS:

const PAYLOADS_OF_ROWS: &str = "SELECT first_seq, payload
   FROM kagzi.events
  WHERE namespace_id = $1
    AND run_id = $2
    AND first_seq = ANY($3)";

// The row that holds an event begins with it or before it.
const HOLDING: &str = "SELECT first_seq, at, kinds, detail, payload
   FROM kagzi.events
  WHERE namespace_id = $1
    AND run_id = $2
    AND first_seq IN (SELECT (SELECT max(holding.first_seq)
                                FROM kagzi.events AS holding
                               WHERE holding.namespace_id = $1
                                 AND holding.run_id = $2
                                 AND holding.first_seq <= wanted.seq)
                        FROM unnest($3::bigint[]) AS wanted (seq))
  ORDER BY first_seq";
}

/// The columns of a row without its payloads, as [`stored`] reads them.
const HEAD: &str = "first_seq, at, kinds, detail";
/// Where the payloads are among the columns of a whole row.
const PAYLOAD: usize = 4;
/// Rows looked through at a time for events that match a filter.
const PIECE_ROWS: usize = 500;
/// Rows whose payloads are fetched at a time.
const PAYLOAD_ROWS: usize = 64;

/// The rows of a batch.
pub fn packed(events: &[EventRow]) -> Vec<PackedRow> {
    rows::pack(events)
}

/// The columns of [`INSERT_EVENTS`].
pub fn columns(rows: &[PackedRow]) -> Columns<'_> {
    vec![
        column(rows, |row| &*row.namespace),
        column(rows, |row| row.run.0),
        column(rows, |row| row.first_seq.cast_signed()),
        column(rows, |row| row.at.0),
        column(rows, |row| &*row.kinds),
        column(rows, |row| &*row.detail),
        column(rows, |row| row.payload.as_deref()),
    ]
}

/// Reads a row without its payloads: first_seq, at, kinds, detail.
fn stored(found: &Row) -> Result<StoredRow<'_>, StoreError> {
    Ok(StoredRow {
        first_seq: row::get::<i64>(found, 0)?.cast_unsigned(),
        at: Timestamp(row::get(found, 1)?),
        kinds: row::get(found, 2)?,
        detail: row::get(found, 3)?,
    })
}

fn payloads(found: &Row, at: usize) -> Result<Bytes, StoreError> {
    Ok(row::get::<Option<&[u8]>>(found, at)?.map(Bytes::copy_from_slice).unwrap_or_default())
}

/// Takes a history into a run that is being loaded.
pub fn absorb(aggregate: &mut Aggregate, history: &[Row]) -> Result<(), StoreError> {
    history.iter().try_for_each(|found| rows::absorb(aggregate, &stored(found)?))
}

/// The input, from the columns of a run's first row: kinds, detail, payload.
pub fn input(found: &Row, at: usize) -> Result<Option<Payload>, StoreError> {
    match shown(found, at)? {
        Some(first) => first.first_payload(&payloads(found, at + 2)?),
        None => Ok(None),
    }
}

/// The output, from the same columns of a completed run's last row.
pub fn output(found: &Row, at: usize) -> Result<Option<Payload>, StoreError> {
    match shown(found, at)? {
        Some(last) => last.last_payload(Kind::RunCompleted as u8, &payloads(found, at + 2)?),
        None => Ok(None),
    }
}

/// What cannot be read is left out: the run is shown all the same, and its history says what is wrong.
pub fn readable(found: Result<Option<Payload>, StoreError>) -> Result<Option<Payload>, StoreError> {
    match found {
        Err(StoreError::Corrupt(_)) => Ok(None),
        other => other,
    }
}

fn shown(found: &Row, at: usize) -> Result<Option<StoredRow<'_>>, StoreError> {
    let Some(kinds) = row::get::<Option<&[u8]>>(found, at)? else { return Ok(None) };
    Ok(Some(StoredRow { first_seq: 1, at: Timestamp(0), kinds, detail: row::get(found, at + 1)? }))
}

/// A piece of a history. Without a filter one statement reads it, and the database cuts it off where its
/// payloads become too large.
pub async fn history(
    session: &Session,
    namespace: &Name,
    run: RunId,
    request: &EventRequest,
) -> Result<EventPiece, StoreError> {
    let filter = &request.filter;
    if filter.step.is_some() || !filter.kinds.is_empty() || filter.at != Default::default() {
        return filtered(session, namespace, run, request).await;
    }
    let wanted = EventRows::of(namespace, run, request);
    let found = query(session, &bounded(&wanted, request)).await?;
    // The last column counts the rows before they are cut off.
    let matching = found.first().map_or(Ok(0), |first| row::get::<i64>(first, PAYLOAD + 1))?;
    let mut reading = Reading::new(request);
    for each in &found {
        let head = stored(each)?;
        let went = reading.row(&head)?;
        if reading.lacks() {
            reading.payloads(head.first_seq, &payloads(each, PAYLOAD)?)?;
        }
        if went.is_break() {
            return Ok(reading.done());
        }
    }
    if matching > found.len() as i64 {
        reading.rows_follow();
    }
    Ok(reading.done())
}

/// Looks through the history without payloads, and then fetches those of the rows that have wanted events.
async fn filtered(
    session: &Session,
    namespace: &Name,
    run: RunId,
    request: &EventRequest,
) -> Result<EventPiece, StoreError> {
    let mut reading = Reading::new(request);
    let mut wanted = EventRows { limit: Some(PIECE_ROWS), ..EventRows::of(namespace, run, request) };
    loop {
        let found = query(session, &wanted.select(POSTGRES, HEAD)).await?;
        let mut full = found.len() < PIECE_ROWS;
        for each in &found {
            let head = stored(each)?;
            if reading.row(&head)?.is_break() {
                full = true;
                break;
            }
            match request.upwards {
                true => wanted.range.start = head.first_seq + head.kinds.len() as u64,
                false => wanted.range.end = head.first_seq,
            }
        }
        if full {
            break;
        }
    }
    for rows in reading.lacking().chunks(PAYLOAD_ROWS) {
        let rows: Vec<i64> = rows.iter().map(|first| seq(*first)).collect();
        let found = session.query(PAYLOADS_OF_ROWS, &[&&**namespace, &run.0, &rows]).await;
        for each in found.map_err(from_postgres)? {
            let first_seq = row::get::<i64>(&each, 0)?.cast_unsigned();
            reading.payloads(first_seq, &payloads(&each, 1)?)?;
        }
    }
    Ok(reading.done())
}

/// Events without their payloads.
pub async fn outline(
    session: &Session,
    namespace: &Name,
    run: RunId,
    after_seq: u64,
    limit: usize,
) -> Result<Vec<EventOutline>, StoreError> {
    let range = after_seq.saturating_add(1)..u64::MAX;
    let wanted = EventRows { namespace, run, range, kinds: &[], upwards: true, limit: Some(limit) };
    let mut lines = Vec::new();
    for found in query(session, &wanted.select(POSTGRES, HEAD)).await? {
        if rows::outline(&stored(&found)?, after_seq, limit, &mut lines)?.is_break() {
            break;
        }
    }
    Ok(lines)
}

/// The payloads of these events.
pub async fn payloads_of(
    session: &Session,
    namespace: &Name,
    run: RunId,
    seqs: &[u64],
) -> Result<Vec<(u64, Payload)>, StoreError> {
    let mut wanted = seqs.to_vec();
    wanted.sort_unstable();
    let numbers: Vec<i64> = wanted.iter().map(|number| seq(*number)).collect();
    let found = session.query(HOLDING, &[&&**namespace, &run.0, &numbers]).await.map_err(from_postgres)?;
    let mut all = Vec::with_capacity(seqs.len());
    for each in &found {
        let head = stored(each)?;
        let from = wanted.partition_point(|number| *number < head.first_seq);
        rows::payloads(&head, &payloads(each, PAYLOAD)?, &wanted[from..], &mut all)?;
    }
    Ok(all)
}

/// The same rows, cut off in the database where their payloads become too large, so that it sends one row
/// more than is needed at the most. A row that is only partly wanted counts nothing. A last column counts
/// what matched before that.
fn bounded(wanted: &EventRows<'_>, request: &EventRequest) -> Statement {
    let Statement { sql, mut bind } = wanted.select(POSTGRES, "first_seq, at, kinds, detail, payload");
    let sort = if request.upwards { "ASC" } else { "DESC" };
    let integer = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    bind.push(integer(request.bytes_max as u64));
    let max = bind.len();
    bind.push(integer(wanted.range.start));
    let start = bind.len();
    bind.push(integer(wanted.range.end));
    let end = bind.len();
    let sql = format!(
        "SELECT first_seq, at, kinds, detail, payload, matching
           FROM (SELECT sized.*,
                        COUNT(*) OVER () AS matching,
                        ROW_NUMBER() OVER (ORDER BY first_seq {sort}) AS number,
                        SUM(own) OVER (ORDER BY first_seq {sort}) AS bytes
                   FROM (SELECT page.*,
                                CASE WHEN first_seq >= ${start} AND first_seq + octet_length(kinds) <= ${end}
                                     THEN COALESCE(octet_length(payload), 0)
                                     ELSE 0 END AS own
                           FROM ({sql}) AS page
                        ) AS sized
                ) AS counted
          WHERE number = 1
             OR (bytes - own <= ${max} AND (octet_length(kinds) > 1 OR bytes <= ${max}))
          ORDER BY first_seq {sort}"
    );
    Statement { sql, bind }
}
