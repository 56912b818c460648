//! A histogram of atomics: one addition per observation, no lock, nothing to allocate.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Upper bounds of durations, in microseconds: from a commit without a disk to a queue that stands still.
pub const DURATION_BOUNDS_US: [u64; 16] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000, 30_000_000, 60_000_000,
];
/// Upper bounds of numbers of things.
pub const COUNT_BOUNDS: [u64; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/// How often which size was observed.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    /// One per bound, and one for what is above all of them.
    counts: Box<[AtomicU64]>,
    sum: AtomicU64,
}

/// A histogram as it stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramRead {
    /// Upper bound, and how many were at most that.
    pub buckets: Vec<(u64, u64)>,
    pub count: u64,
    pub sum: u64,
}

impl Histogram {
    /// Of durations in microseconds.
    pub fn of_durations() -> Self {
        Histogram::with(&DURATION_BOUNDS_US)
    }

    /// Of numbers of things.
    pub fn of_counts() -> Self {
        Histogram::with(&COUNT_BOUNDS)
    }

    fn with(bounds: &'static [u64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram { bounds, counts, sum: AtomicU64::new(0) }
    }

    /// Adds one observation.
    pub fn observe(&self, value: u64) {
        let at = self.bounds.partition_point(|bound| *bound < value);
        self.counts[at].fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
    }

    /// Reads it. Observations that come meanwhile are in it or not, but the count fits the buckets.
    pub fn read(&self) -> HistogramRead {
        let mut count = 0;
        let mut up_to = |counter: &AtomicU64| {
            count += counter.load(Relaxed);
            count
        };
        let buckets = self.bounds.iter().zip(&self.counts).map(|(bound, n)| (*bound, up_to(n))).collect();
        let above = &self.counts[self.bounds.len()];
        let count = up_to(above);
        HistogramRead { buckets, count, sum: self.sum.load(Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_count_what_is_at_most_their_bound() {
        let histogram = Histogram::of_counts();
        for value in [1, 2, 3, 1024, 5000] {
            histogram.observe(value);
        }

        let read = histogram.read();
        assert_eq!(read.buckets[..3], [(1, 1), (2, 2), (4, 3)]);
        assert_eq!(read.buckets.last(), Some(&(1024, 4)));
        assert_eq!((read.count, read.sum), (5, 6030));
    }
}
