//! What is asked of a database before it is used.

use kagzi_model::Timestamp;
use kagzi_store::StoreError;

use crate::{error::from_postgres, row, session::Session};

const ENCODING: &str = "SELECT current_setting('server_encoding')";

/// Refuses a database that cannot hold every text. One character that it lacks would fail the transaction of
/// everybody who shares it.
pub async fn check_encoding(session: &Session) -> Result<(), StoreError> {
    let rows = session.query(ENCODING, &[]).await.map_err(from_postgres)?;
    let encoding: String = row::get(&rows[0], 0)?;
    if encoding == "UTF8" {
        return Ok(());
    }
    Err(StoreError::Unavailable(format!(
        "the database's encoding is {encoding}, and Kagzi needs UTF8; make another one with: CREATE \
         DATABASE … \
         ENCODING 'UTF8' TEMPLATE template0"
    )))
}

const KINDS_LEVEL: &str = "SELECT level FROM kagzi.levels WHERE name = 'kinds'";

/// Up to which level events may be written here.
pub async fn kinds_level(session: &Session) -> Result<u8, StoreError> {
    let rows = session.query(KINDS_LEVEL, &[]).await.map_err(from_postgres)?;
    let level = rows.first().map(|found| row::get::<i16>(found, 0)).transpose()?;
    let level = level.and_then(|level| u8::try_from(level).ok());
    level.ok_or_else(|| StoreError::Corrupt("the table of levels has no sound row for kinds".into()))
}

// Heartbeats, starts and ends: whatever happens is followed by one of them within seconds, and each is found
// without a walk over all runs.
const NEWEST: &str = "SELECT GREATEST(
    (SELECT max(GREATEST(heartbeat_at, deregistered_at)) FROM kagzi.workers),
    (SELECT max(GREATEST(
        (SELECT max(created_at) FROM kagzi.runs AS run WHERE run.namespace_id = namespace.namespace_id),
        (SELECT max(finished_at)
           FROM kagzi.runs AS run
          WHERE run.namespace_id = namespace.namespace_id
            AND finished_at IS NOT NULL)))
       FROM kagzi.namespaces AS namespace))";

/// The newest time in the database, if anything ever happened.
pub async fn newest(session: &Session) -> Result<Option<Timestamp>, StoreError> {
    let rows = session.query(NEWEST, &[]).await.map_err(from_postgres)?;
    let newest: Option<i64> = row::get(&rows[0], 0)?;
    Ok(newest.map(Timestamp))
}
