//! Codes of the failures that the engine itself writes.

pub use kagzi_catalogue::codes::{
    ABANDONED, CANCELLED, ERROR, LEASE_LOST, QUARANTINED, RELEASED, RUN_GONE, TERMINATED, TIMED_OUT,
    WORKER_LOST,
};
