//! The newest time in a database, for a clock that must not begin before it.

use kagzi_model::Timestamp;
use kagzi_store::StoreError;

use crate::{db::Db, value::bind};

// Heartbeats, starts and ends: whatever happens is followed by one of them within seconds, and each is found
// without a walk over all runs. The statements are executed at every opening, so every test of the store
// prepares them.
const NEWEST_OF_WORKERS: &str = "SELECT max(heartbeat_at), max(deregistered_at) FROM workers";
const NAMESPACES: &str = "SELECT namespace_id FROM namespaces";
const NEWEST_START: &str = "SELECT max(created_at) FROM runs WHERE namespace_id = ?1";
const NEWEST_END: &str =
    "SELECT max(finished_at) FROM runs WHERE namespace_id = ?1 AND finished_at IS NOT NULL";

/// The newest time in the database, if anything ever happened.
pub fn newest(db: &Db) -> Result<Option<Timestamp>, StoreError> {
    let mut newest = None;
    let mut see = |at: Option<Timestamp>| newest = newest.max(at);
    db.each(NEWEST_OF_WORKERS, &[], |row| {
        see(row.get(0)?);
        see(row.get(1)?);
        Ok(())
    })?;
    for namespace in db.all(NAMESPACES, &[], |row| row.get::<String>(0))? {
        for statement in [NEWEST_START, NEWEST_END] {
            see(db.first(statement, bind![&*namespace], |row| row.get(0))?.flatten());
        }
    }
    Ok(newest)
}
