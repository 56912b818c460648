//! Whose database a file is: we write only into our own.

use std::path::Path;

use kagzi_store::StoreError;

use crate::{db::Db, sqlite};

/// "kagz" in ASCII, in the header of the file: `file` and other programs can tell.
pub const APPLICATION_ID: i64 = 0x6B61_677A;

/// What is in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Nothing,
    Ours,
}

/// Looks without changing anything. A database of another program is refused.
pub fn recognise(path: &Path) -> Result<Found, StoreError> {
    if std::fs::metadata(path).is_ok_and(|found| found.len() == 0) {
        return Ok(Found::Nothing);
    }
    let db = sqlite::reader(path)?;
    let number = |sql| db.first(sql, &[], |row| row.get::<i64>(0)).map(Option::unwrap_or_default);
    let (id, schema) = (number("PRAGMA application_id")?, number("PRAGMA user_version")?);
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    let of_ours = number(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('runs', 'events', 'workers')",
    )?;
    // Before it had an id of its own, a database was known by its tables.
    match (id, tables) {
        (0 | APPLICATION_ID, 0) => Ok(Found::Nothing),
        (APPLICATION_ID, _) => Ok(Found::Ours),
        (0, _) if of_ours == 3 && schema > 0 => Ok(Found::Ours),
        (_, _) => Err(StoreError::Unavailable(format!(
            "{} is a database of another program (application id {id:#x}); choose another file",
            path.display()
        ))),
    }
}

/// Makes the file known as ours.
pub fn sign(db: &Db) -> Result<(), StoreError> {
    let id = db.first("PRAGMA application_id", &[], |row| row.get::<i64>(0))?;
    if id == Some(APPLICATION_ID) {
        return Ok(());
    }
    db.batch(&format!("PRAGMA application_id = {APPLICATION_ID}"))
}
