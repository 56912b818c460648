//! PostgreSQL's errors in our words.

use std::error::Error as _;

use kagzi_store::StoreError;
use tokio_postgres::{Error, error::SqlState};

/// How an error begins that means: somebody holds a lock, and we did not wait for ever.
pub const LOCK_TIMEOUT: &str = "a lock was not to be had in time";

/// Sorts an error by what the caller can do about it.
pub fn from_postgres(error: Error) -> StoreError {
    let Some(cause) = error.as_db_error() else {
        let network = error.is_closed() || error.source().is_some_and(|cause| cause.is::<std::io::Error>());
        // What is neither the server's word nor the network's is a value that we could not read.
        return if network { StoreError::Unavailable(text(&error)) } else { not_understood(&error) };
    };
    let why = match cause.detail() {
        Some(detail) if *cause.code() != SqlState::UNIQUE_VIOLATION => {
            format!("{} ({detail})", cause.message())
        }
        Some(_) | None => cause.message().to_owned(),
    };
    match cause.code() {
        // The guards divide by zero when a row is not what memory says.
        &SqlState::DIVISION_BY_ZERO => StoreError::Conflict(
            "a run or a namespace has another version, or a worker another server, than memory says".into(),
        ),
        &SqlState::UNIQUE_VIOLATION => StoreError::Duplicate(why),
        &SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED => StoreError::Conflict(why),
        // Prepared on one connection, looked for on another.
        &SqlState::INVALID_SQL_STATEMENT_NAME | &SqlState::DUPLICATE_PSTATEMENT => {
            let hint =
                "a pooler in transaction mode seems to stand in between; add ?pgbouncer=true to the URL";
            StoreError::Unavailable(format!("{why}; {hint}"))
        }
        // A migration of a newer server changed a column under a prepared statement: a new connection
        // prepares it anew.
        &SqlState::FEATURE_NOT_SUPPORTED => StoreError::Unavailable(why),
        // In our words: the database may speak another language.
        &SqlState::LOCK_NOT_AVAILABLE => StoreError::Unavailable(format!("{LOCK_TIMEOUT}: {why}")),
        &SqlState::DISK_FULL => StoreError::Full(format!("{why}; free some space, nothing was lost")),
        &SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED => StoreError::Corrupt(why),
        code if away(code.code()) => StoreError::Unavailable(why),
        code => StoreError::Bug(format!("{why} (SQLSTATE {})", code.code())),
    }
}

/// Codes that time or an operator heals: connection (08), authorization (28, 42501), read-only (25006),
/// resources (53), locks (55P03), shutdown and cancel (57), input and output (58), a missing database
/// (3D000).
fn away(code: &str) -> bool {
    ["08", "28", "53", "57", "58"].iter().any(|class| code.starts_with(class))
        || ["42501", "25006", "55P03", "3D000"].contains(&code)
}

fn not_understood(error: &Error) -> StoreError {
    let text = text(error);
    // Connecting fails with kinds of its own: bad password, no TLS, closed early.
    if text.contains("connect") || text.contains("authentication") || text.contains("TLS") {
        StoreError::Unavailable(text)
    } else {
        StoreError::Corrupt(text)
    }
}

/// The error with its causes; the outer one alone says only "db error".
fn text(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::away;

    #[test]
    fn what_heals_by_itself_is_unavailable_and_nothing_else() {
        let healing = ["08006", "57P01", "57014", "53300", "25006", "55P03", "28P01"];
        let ours = ["42P01", "42601", "22021", "23502", "25P02"];

        assert!(healing.iter().all(|code| away(code)));
        assert!(!ours.iter().any(|code| away(code)));
    }
}
