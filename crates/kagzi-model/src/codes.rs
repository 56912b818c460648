//! Codes of the failures that the engine itself writes. What they mean stands in the contract's catalogue
//! (`kagzi-proto/src/codes.rs`), which a test of the server compares with this list.

/// An attempt took longer than it may, or a run did not end before its deadline.
pub const TIMED_OUT: &str = "TIMED_OUT";
/// The worker of an attempt was lost.
pub const WORKER_LOST: &str = "WORKER_LOST";
/// The run was taken from its worker while an attempt ran.
pub const LEASE_LOST: &str = "LEASE_LOST";
/// The worker gave the run back while an attempt ran.
pub const RELEASED: &str = "RELEASED";
/// The run was cancelled while an attempt ran.
pub const CANCELLED: &str = "CANCELLED";
/// A person ended the run as failed.
pub const TERMINATED: &str = "TERMINATED";
/// Workers were lost over the run again and again.
pub const QUARANTINED: &str = "QUARANTINED";
/// The run whose failure a handler handles is no longer kept.
pub const RUN_GONE: &str = "RUN_GONE";
/// An error without a code.
pub const ERROR: &str = "ERROR";

/// All of them.
pub const ALL: [&str; 9] =
    [TIMED_OUT, WORKER_LOST, LEASE_LOST, RELEASED, CANCELLED, TERMINATED, QUARANTINED, RUN_GONE, ERROR];
