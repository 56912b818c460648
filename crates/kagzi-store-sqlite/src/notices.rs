//! The outbox: what people are told, for the writer and for readers.

use kagzi_model::{
    Timestamp,
    intervention::{Channel, InterventionKey, Message, Notice, NoticeState},
};
use kagzi_store::{PeopleSet, StoreError, TakeNotices, notice};

use crate::{
    db::Db,
    value::{Row, Value, bind, unreadable},
};

kagzi_store::statements! {
/// Every statement about notices; a test prepares each on a real database.
STATEMENTS:

const NOTICES_OF: &str = concat!(
    "SELECT ",
    notice!(columns),
    "
   FROM notices INDEXED BY notices_of
  WHERE namespace_id = ?1
    AND intervention_id = ?2
  ORDER BY created_at, notice_id"
);

const DUE_NOTICES: &str = concat!(
    "SELECT ",
    notice!(columns),
    "
   FROM notices INDEXED BY notices_due
  WHERE next_at <= ?1
    AND next_at IS NOT NULL
    AND channel = ?2
  ORDER BY next_at, notice_id
  LIMIT ?3"
);

const NOTICE_DUE_SINCE: &str = "SELECT next_at
   FROM notices INDEXED BY notices_due
  WHERE next_at IS NOT NULL
  ORDER BY next_at
  LIMIT 1";

const HOLD_NOTICE: &str = "UPDATE notices
    SET next_at = ?3
  WHERE namespace_id = ?1
    AND notice_id = ?2";

// One that is there already says the same.
const INSERT_NOTICE: &str = concat!(
    "INSERT INTO notices (",
    notice!(inserted),
    ")
 VALUES (",
    notice!(values),
    ")
     ON CONFLICT DO NOTHING"
);

// Only what is still to be sent: its question may have been closed meanwhile.
const SETTLE_NOTICE: &str = concat!(
    "UPDATE notices
    SET ",
    notice!(set),
    "
  WHERE namespace_id = ?1
    AND notice_id = ?2
    AND next_at IS NOT NULL"
);

const SILENCE: &str = "UPDATE notices
    SET state = ?3,
        next_at = NULL
  WHERE namespace_id = ?1
    AND intervention_id = ?2
    AND next_at IS NOT NULL
    AND message <> ?4";

const FORGET_NOTICES: &str = "DELETE FROM notices
  WHERE namespace_id = ?1
    AND intervention_id = ?2";
}

/// Writes what changed of the outbox.
pub fn write(db: &Db, people: &PeopleSet) -> Result<(), StoreError> {
    for key in &people.silenced {
        let (state, but) = (NoticeState::Suppressed as u8, Message::NoLongerNeeded as u8);
        db.execute(SILENCE, bind![key.namespace, key.id, state, but])?;
    }
    for row in &people.notices {
        let (changed, channel, message) = (changed(row), row.channel as u8, row.message as u8);
        let fixed = bind![row.question.id, channel, row.recipient, message, row.fields, row.created_at,];
        let all: Vec<Value<'_>> = changed.iter().chain(fixed).copied().collect();
        db.execute(INSERT_NOTICE, &all)?;
    }
    for row in &people.settled {
        db.execute(SETTLE_NOTICE, &changed(row))?;
    }
    Ok(())
}

fn changed(row: &Notice) -> [Value<'_>; notice!(changed_width)] {
    use crate::value::Bind;
    [
        row.question.namespace.value(),
        row.id.value(),
        Value::Integer(row.state as i64),
        row.attempts.value(),
        row.next_at.value(),
        row.last_error.value(),
        row.sent_at.value(),
    ]
}

/// Notices that are due; nobody else takes them before `until`.
pub fn take(db: &Db, now: Timestamp, take: TakeNotices) -> Result<Vec<Notice>, StoreError> {
    let TakeNotices { channel, until, limit } = take;
    let mut taken = db.all(DUE_NOTICES, bind![now, channel as u8, limit], read)?;
    for row in &mut taken {
        db.execute(HOLD_NOTICE, bind![row.question.namespace, row.id, until])?;
        row.next_at = Some(until);
    }
    Ok(taken)
}

/// When the first notice is due.
pub fn due_since(db: &Db) -> Result<Option<Timestamp>, StoreError> {
    db.first(NOTICE_DUE_SINCE, bind![], |row| row.get(0))
}

/// What was told about a question.
pub fn of(db: &Db, key: &InterventionKey) -> Result<Vec<Notice>, StoreError> {
    db.all(NOTICES_OF, bind![key.namespace, key.id], read)
}

/// Deletes what was told about a question.
pub fn forget(db: &Db, key: &InterventionKey) -> Result<(), StoreError> {
    db.execute(FORGET_NOTICES, bind![key.namespace, key.id]).map(drop)
}

fn read(row: &Row<'_>) -> Result<Notice, StoreError> {
    let state = NoticeState::from_number(row.get(2)?).ok_or_else(|| unreadable(2, "no such state"))?;
    let channel = Channel::from_number(row.get(8)?).ok_or_else(|| unreadable(8, "no such channel"))?;
    let message = Message::from_number(row.get(10)?).ok_or_else(|| unreadable(10, "no such message"))?;
    Ok(Notice {
        question: InterventionKey { namespace: row.get(0)?, id: row.get(7)? },
        id: row.get(1)?,
        state,
        attempts: row.get(3)?,
        next_at: row.get(4)?,
        last_error: row.get(5)?,
        sent_at: row.get(6)?,
        channel,
        recipient: row.get(9)?,
        message,
        fields: row.get(11)?,
        created_at: row.get(12)?,
    })
}
