//! Codes of the failures that the engine itself writes.

pub use kagzi_catalogue::codes::{
    ABANDONED, CANCELLED, CHILD_CLOSED, CHILD_NOT_STARTED, ERROR, HISTORY_TOO_LARGE, LEASE_LOST, NOT_YET,
    QUARANTINED, RELEASED, RUN_GONE, TERMINATED, TIMED_OUT, WORKER_LOST,
};
