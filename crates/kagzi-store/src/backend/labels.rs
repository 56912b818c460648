//! Labels, as a batch writes them.

use kagzi_model::{Name, RunId, Timestamp};

/// One label of one run, with the times by which its run is listed.
#[derive(Debug, Clone)]
pub struct LabelRow {
    pub namespace: Name,
    pub run: RunId,
    pub name: Name,
    pub value: Name,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
}
