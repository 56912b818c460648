//! Reading the columns of a row.

use kagzi_model::{Name, RunId};
use kagzi_store::{RunKey, StoreError};
use tokio_postgres::{Row, types::FromSql};
use uuid::Uuid;

use crate::error::from_postgres;

/// Reads the key of a run: run_id, namespace_id.
pub fn run_key(row: &Row) -> Result<RunKey, StoreError> {
    Ok(RunKey { id: RunId(get(row, 0)?), namespace: name(row, 1)? })
}

/// The columns of keys.
pub fn key_columns(keys: &[RunKey]) -> (Vec<&str>, Vec<Uuid>) {
    (keys.iter().map(|key| &*key.namespace).collect(), keys.iter().map(|key| key.id.0).collect())
}

/// Reads one column.
pub fn get<'r, T: FromSql<'r>>(row: &'r Row, at: usize) -> Result<T, StoreError> {
    row.try_get(at).map_err(from_postgres)
}

/// Reads a name.
pub fn name(row: &Row, at: usize) -> Result<Name, StoreError> {
    get::<&str>(row, at).map(Name::from)
}

/// Reads JSON. What cannot be read is reported, never replaced by a default.
pub fn json<T: serde::de::DeserializeOwned>(row: &Row, at: usize) -> Result<T, StoreError> {
    serde_json::from_str(get(row, at)?)
        .map_err(|error| StoreError::Corrupt(format!("column {}: {error}", row.columns()[at].name())))
}
