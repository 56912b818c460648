//! What is counted only when somebody asks: the queues, the workers, and what runs wait for.

use std::{
    cmp::Reverse,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

use kagzi_engine::Engine;
use kagzi_store::{Census, WaitCount};

/// Two scrapers, or one that is impatient, cost one count.
const FRESH: Duration = Duration::from_secs(5);
/// Longest time that a scrape waits for the count.
const PATIENCE: Duration = Duration::from_secs(3);
/// Queues with lines of their own, those with the oldest runs first, so that a page stays a page.
const QUEUES_MAX: usize = 500;
/// Pairs of namespace and status with lines of their own, those with the most workers first.
const WORKERS_MAX: usize = 500;

/// Pairs of namespace and kind of wait with lines of their own, those with the most runs first.
const WAITS_MAX: usize = 500;
/// Counting what runs wait for reads a row for each of them, so of all time it takes one part in so many at
/// the most, however many there are.
const WAITS_SHARE: u32 = 100;

/// Counts by reading, at most every few seconds.
#[derive(Default)]
pub struct Sampler {
    last: tokio::sync::Mutex<Option<(Instant, Census)>>,
    waits: tokio::sync::Mutex<Waits>,
    errors: AtomicU64,
}

/// The last count of what runs wait for.
#[derive(Default)]
struct Waits {
    counted: Vec<WaitCount>,
    /// Until then it is good enough.
    fresh_until: Option<Instant>,
}

impl Sampler {
    /// How many runs wait for what: the last count, or a new one when that is old. Empty when the store does
    /// not answer in time.
    pub async fn waits(&self, engine: &Engine) -> Vec<WaitCount> {
        let mut last = self.waits.lock().await;
        let began = Instant::now();
        if last.fresh_until.is_some_and(|until| began < until) {
            return last.counted.clone();
        }
        let counted = match tokio::time::timeout(PATIENCE, engine.store().waits()).await {
            Ok(Ok(counted)) => counted,
            Ok(Err(_)) | Err(_) => {
                self.errors.fetch_add(1, Relaxed);
                Vec::new()
            }
        };
        last.counted = largest(counted);
        last.fresh_until = Some(began + good_for(began.elapsed()));
        last.counted.clone()
    }

    /// The last count, or a new one when that is old. Empty when the store does not answer in time.
    pub async fn sample(&self, engine: &Engine) -> Census {
        let mut last = self.last.lock().await;
        if let Some((at, census)) = &*last
            && at.elapsed() < FRESH
        {
            return census.clone();
        }
        let counting = engine.store().census(engine.clock().now());
        let mut census = match tokio::time::timeout(PATIENCE, counting).await {
            Ok(Ok(census)) => census,
            Ok(Err(_)) | Err(_) => {
                self.errors.fetch_add(1, Relaxed);
                Census::default()
            }
        };
        cut(&mut census);
        *last = Some((Instant::now(), census.clone()));
        census
    }

    pub fn errors(&self) -> u64 {
        self.errors.load(Relaxed)
    }
}

/// How long a count is good enough that took so long.
fn good_for(took: Duration) -> Duration {
    FRESH.max(took * WAITS_SHARE)
}

/// Anybody can make namespaces, so the page must have an end.
fn largest(mut waits: Vec<WaitCount>) -> Vec<WaitCount> {
    waits.sort_by_key(|waits| Reverse(waits.count));
    waits.truncate(WAITS_MAX);
    waits
}

/// Anybody can make queues and namespaces, so neither may make a page without end.
fn cut(census: &mut Census) {
    census.queues.sort_by_key(|queue| {
        let oldest = queue.oldest_ready_at.unwrap_or(kagzi_model::Timestamp::MAX);
        (oldest, Reverse(queue.leased))
    });
    census.queues.truncate(QUEUES_MAX);
    census.workers.sort_by_key(|counted| Reverse(counted.count));
    census.workers.truncate(WORKERS_MAX);
}

#[cfg(test)]
mod tests {
    use kagzi_model::{Name, WorkerStatus};
    use kagzi_store::WorkerCount;

    use super::*;

    #[test]
    fn a_count_that_takes_long_is_made_rarely() {
        assert_eq!(good_for(Duration::from_millis(1)), FRESH);
        assert_eq!(good_for(Duration::from_secs(2)), Duration::from_secs(200));
    }

    #[test]
    fn waits_in_namespaces_without_number_make_a_page_with_an_end_and_the_most_stay() {
        let counted = |at: u64| WaitCount {
            namespace: Name::from(format!("tenant-{at}")),
            reason: Name::from("signal"),
            count: at,
        };

        let waits = largest((1..=2_000).map(counted).collect());

        assert_eq!((waits.len(), waits[0].count), (WAITS_MAX, 2_000));
    }

    #[test]
    fn namespaces_without_number_make_a_page_with_an_end_and_the_largest_stay() {
        let counted = |at: u64| WorkerCount {
            namespace: Name::from(format!("tenant-{at}")),
            status: WorkerStatus::Online,
            count: at,
        };
        let mut census = Census { workers: (1..=2_000).map(counted).collect(), ..Census::default() };

        cut(&mut census);

        assert_eq!(census.workers.len(), WORKERS_MAX);
        assert!(census.workers.iter().all(|counted| counted.count > 1_500));
    }
}
