//! SQLite's errors in our words.

use kagzi_store::StoreError;
use rusqlite::ErrorCode;

/// Sorts an error by what the caller can do about it.
pub fn from_sqlite(error: rusqlite::Error) -> StoreError {
    if matches!(error, rusqlite::Error::StatementChangedRows(_)) {
        return StoreError::Conflict("a run has another version than memory says".into());
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full(format!("{error}; free some space, nothing was lost")),
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::OperationInterrupted
            | ErrorCode::ReadOnly,
        ) => StoreError::Unavailable(error.to_string()),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Corrupt(error.to_string()),
        Some(_) => StoreError::Bug(error.to_string()),
        None => StoreError::Corrupt(error.to_string()),
    }
}
