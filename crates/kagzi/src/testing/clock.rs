//! The clock of a test engine: stands still until it is moved, and tells when the engine waits for it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use kagzi_server::{Clock, ManualClock, Timestamp};
use tokio_util::sync::CancellationToken;

#[derive(Clone)]
pub(crate) struct TestClock {
    clock: ManualClock,
    waits: Arc<AtomicUsize>,
    awaited: Arc<CancellationToken>,
}

/// The tasks of an engine that wait for a time from the start: the sweeper, retention and the scheduler.
const WAITING: usize = 3;

impl TestClock {
    pub(crate) fn new(now: Timestamp) -> TestClock {
        TestClock { clock: ManualClock::new(now), waits: Arc::default(), awaited: Arc::default() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// Returns once the engine's housekeeping waits for a time, and so is on its feet.
    pub(crate) async fn awaited(&self) {
        self.awaited.cancelled().await;
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn sleep_until<'s, 'f>(&'s self, at: Timestamp) -> Pin<Box<dyn Future<Output = ()> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        if self.waits.fetch_add(1, Relaxed) + 1 >= WAITING {
            self.awaited.cancel();
        }
        self.clock.sleep_until(at)
    }
}
