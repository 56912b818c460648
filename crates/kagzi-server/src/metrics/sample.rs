//! What is counted only when somebody asks: the queues and the workers.

use std::{
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
        census.queues.sort_by_key(|queue| {
            let oldest = queue.oldest_ready_at.unwrap_or(kagzi_model::Timestamp::MAX);
            (oldest, std::cmp::Reverse(queue.leased))
        });
        census.queues.truncate(QUEUES_MAX);
        *last = Some((Instant::now(), census.clone()));
        census
    }

    pub fn errors(&self) -> u64 {
        self.errors.load(Relaxed)
    }
}
