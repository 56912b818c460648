//! What is counted only when somebody asks: the queues and the workers.

use std::{
    cmp::Reverse,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

use kagzi_engine::Engine;
use kagzi_store::Census;

/// Two scrapers, or one that is impatient, cost one count.
const FRESH: Duration = Duration::from_secs(5);
/// Longest time that a scrape waits for the count.
const PATIENCE: Duration = Duration::from_secs(3);
/// Queues with lines of their own, those with the oldest runs first, so that a page stays a page.
const QUEUES_MAX: usize = 500;
/// Pairs of namespace and status with lines of their own, those with the most workers first.
const WORKERS_MAX: usize = 500;

/// Counts by reading, at most every few seconds.
#[derive(Default)]
pub struct Sampler {
    last: tokio::sync::Mutex<Option<(Instant, Census)>>,
    errors: AtomicU64,
}

impl Sampler {
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
