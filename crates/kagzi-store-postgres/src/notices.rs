//! The outbox: what people are told, for the writer and for readers.

use kagzi_model::{
    Timestamp,
    intervention::{Channel, InterventionKey, Message, Notice, NoticeState},
};
use kagzi_store::{StoreError, notice};
use tokio_postgres::Row;

use crate::{
    row,
    session::Session,
    write::{Columns, Sending, column, send, text},
};

kagzi_store::statements! {
/// Every statement about notices; a test prepares each on a real database.
STATEMENTS:

pub const NOTICES_OF: &str = concat!(
    "SELECT ",
    notice!(columns),
    "
   FROM kagzi.notices
  WHERE namespace_id = $1
    AND intervention_id = $2
  ORDER BY created_at, notice_id"
);

pub const NOTICE_DUE_SINCE: &str = "SELECT next_at
   FROM kagzi.notices
  WHERE next_at IS NOT NULL
  ORDER BY next_at
  LIMIT 1";

// What another server takes at this moment is passed over.
pub const TAKE_NOTICES: &str = concat!(
    "WITH due AS (
    SELECT namespace_id, notice_id
      FROM kagzi.notices
     WHERE next_at <= $1
       AND channel = $4
     ORDER BY next_at, notice_id
     LIMIT $3
       FOR UPDATE SKIP LOCKED
)
UPDATE kagzi.notices
   SET next_at = $2
  FROM due
 WHERE notices.namespace_id = due.namespace_id
   AND notices.notice_id = due.notice_id
RETURNING ",
    notice!(qualified)
);

// One that is there already says the same.
const INSERT_NOTICES: &str = concat!(
    "INSERT INTO kagzi.notices (",
    notice!(inserted),
    ")
 SELECT *
   FROM unnest(",
    notice!(arrays),
    ")
     ON CONFLICT DO NOTHING"
);

// Only what is still to be sent: its question may have been closed meanwhile.
const SETTLE_NOTICES: &str = concat!(
    "UPDATE kagzi.notices
    SET ",
    notice!(set_new),
    "
   FROM unnest(",
    notice!(changed_arrays),
    ")
        AS new (",
    notice!(changed),
    ")
  WHERE notices.namespace_id = new.namespace_id
    AND notices.notice_id = new.notice_id
    AND notices.next_at IS NOT NULL"
);

const SILENCE: &str = "UPDATE kagzi.notices
    SET state = $3,
        next_at = NULL
   FROM unnest($1::text[], $2::uuid[]) AS closed (namespace_id, intervention_id)
  WHERE notices.namespace_id = closed.namespace_id
    AND notices.intervention_id = closed.intervention_id
    AND notices.next_at IS NOT NULL
    AND notices.message <> $4";
}

/// The statements for the outbox, in order.
pub fn statements(
    session: &Session,
    silenced: Vec<InterventionKey>,
    notices: Vec<Notice>,
    settled: Vec<Notice>,
) -> Vec<Sending<'_>> {
    let mut sending: Vec<Sending<'_>> = Vec::new();
    if !silenced.is_empty() {
        sending.push(Box::pin(async move {
            let columns: Columns<'_> = vec![
                column(&silenced, |key| &*key.namespace),
                column(&silenced, |key| key.id),
                Box::new(NoticeState::Suppressed as i16),
                Box::new(Message::NoLongerNeeded as i16),
            ];
            send(session, SILENCE, columns).await
        }));
    }
    if !notices.is_empty() {
        sending.push(Box::pin(async move {
            let mut columns = columns(&notices);
            columns.push(column(&notices, |row| row.question.id));
            columns.push(column(&notices, |row| row.channel as i16));
            columns.push(column(&notices, |row| &*row.recipient));
            columns.push(column(&notices, |row| row.message as i16));
            columns.push(column(&notices, |row| text(&row.fields)));
            columns.push(column(&notices, |row| row.created_at.0));
            send(session, INSERT_NOTICES, columns).await
        }));
    }
    if !settled.is_empty() {
        sending.push(Box::pin(async move { send(session, SETTLE_NOTICES, columns(&settled)).await }));
    }
    sending
}

fn columns(rows: &[Notice]) -> Columns<'_> {
    let columns: [_; notice!(changed_width)] = [
        column(rows, |row| &*row.question.namespace),
        column(rows, |row| &*row.id),
        column(rows, |row| row.state as i16),
        column(rows, |row| i32::try_from(row.attempts).unwrap_or(i32::MAX)),
        column(rows, |row| row.next_at.map(|at| at.0)),
        column(rows, |row| row.last_error.as_deref().map(text)),
        column(rows, |row| row.sent_at.map(|at| at.0)),
    ];
    columns.into()
}

pub fn read(found: &Row) -> Result<Notice, StoreError> {
    let wrong = |what: &str| StoreError::Corrupt(format!("a notice has no such {what}"));
    let number = |at: usize| row::get::<i16>(found, at).map(i64::from);
    let time = |at: usize| row::get::<Option<i64>>(found, at).map(|at| at.map(Timestamp));
    Ok(Notice {
        question: InterventionKey { namespace: row::name(found, 0)?, id: row::get(found, 7)? },
        id: row::name(found, 1)?,
        state: NoticeState::from_number(number(2)?).ok_or_else(|| wrong("state"))?,
        attempts: u32::try_from(row::get::<i32>(found, 3)?).unwrap_or(0),
        next_at: time(4)?,
        last_error: row::get(found, 5)?,
        sent_at: time(6)?,
        channel: Channel::from_number(number(8)?).ok_or_else(|| wrong("channel"))?,
        recipient: row::name(found, 9)?,
        message: Message::from_number(number(10)?).ok_or_else(|| wrong("message"))?,
        fields: row::get(found, 11)?,
        created_at: Timestamp(row::get(found, 12)?),
    })
}
