//! Waiting for an event, never for time.

use std::time::{Duration, Instant};

/// Far above what anything takes on an idle machine: only a fault that was not survived reaches it.
pub const DEADLINE: Duration = Duration::from_secs(40);

/// Looks every 10 ms until there is something to see; panics with `what` at the deadline.
pub async fn eventually<T>(what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
    eventually_within(DEADLINE, what, look).await
}

/// The same with another deadline.
pub async fn eventually_within<T>(
    deadline: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> T {
    let until = Instant::now() + deadline;
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(Instant::now() < until, "not within {deadline:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
