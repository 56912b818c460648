//! Counters of the write path: how many commands share a commit is where the speed comes from.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Totals since the start.
#[derive(Debug, Default)]
pub struct LaneStats {
    pub commits: AtomicU64,
    pub commands: AtomicU64,
    pub refused: AtomicU64,
    pub refused_stale: AtomicU64,
    pub events: AtomicU64,
    pub leases: AtomicU64,
    pub leases_lost: AtomicU64,
    pub commit_micros: AtomicU64,
    pub commit_errors: AtomicU64,
    pub conflicts: AtomicU64,
    pub batch_max: AtomicU64,
}

impl LaneStats {
    /// Adds to a counter.
    pub fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Relaxed);
    }

    /// Reads a counter.
    pub fn get(counter: &AtomicU64) -> u64 {
        counter.load(Relaxed)
    }
}
