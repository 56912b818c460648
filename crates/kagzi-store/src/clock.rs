//! Time, injected. Nothing below the server asks the machine what time it is.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use async_trait::async_trait;
use kagzi_model::Timestamp;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The one clock of a server.
#[async_trait]
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Timestamp;
    /// Returns at `at` or later, never earlier.
    async fn sleep_until(&self, at: Timestamp);
    /// How far it is ahead of this machine's clock.
    fn skew_ms(&self) -> i64 {
        0
    }
}

/// The machine's clock, read once and then carried by the monotonic one: a step of the wall clock neither
/// fires timers early nor freezes them.
#[derive(Debug, Clone)]
pub struct SystemClock {
    started: Instant,
    started_at: Timestamp,
}

impl SystemClock {
    /// Reads the wall clock.
    pub fn new() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        SystemClock { started: Instant::now(), started_at: Timestamp(0) + since_epoch }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock::new()
    }
}

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        self.started_at + self.started.elapsed()
    }

    async fn sleep_until(&self, at: Timestamp) {
        // Tokio's timer counts whole milliseconds and may fire within the one we asked for: look again.
        while let left = at - self.now()
            && !left.is_zero()
        {
            tokio::time::sleep(left.max(Duration::from_micros(100))).await;
        }
    }
}

/// A clock that moves only when told to. Sleepers wake as soon as it passes their time.
#[derive(Clone)]
pub struct ManualClock {
    inner: Arc<Mutex<ManualInner>>,
}

struct ManualInner {
    now: Timestamp,
    sleepers: BTreeMap<(Timestamp, u64), oneshot::Sender<()>>,
    next_id: u64,
}

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn new(now: Timestamp) -> Self {
        let inner = ManualInner { now, sleepers: BTreeMap::new(), next_id: 0 };
        ManualClock { inner: Arc::new(Mutex::new(inner)) }
    }

    /// Moves the clock and wakes whoever is due.
    pub fn advance(&self, by: Duration) {
        let mut inner = self.inner.lock();
        let now = inner.now + by;
        inner.now = now;
        let still = inner.sleepers.split_off(&(Timestamp(now.0 + 1), 0));
        for (_, waker) in std::mem::replace(&mut inner.sleepers, still) {
            // The sleeper may have given up; then nobody needs waking.
            let _ = waker.send(());
        }
    }
}

#[async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.inner.lock().now
    }

    async fn sleep_until(&self, at: Timestamp) {
        let woken = {
            let mut inner = self.inner.lock();
            if inner.now >= at {
                return;
            }
            let (send, woken) = oneshot::channel();
            let id = inner.next_id;
            inner.next_id += 1;
            inner.sleepers.insert((at, id), send);
            woken
        };
        // The sender lives in the clock, which outlives its sleepers.
        let _ = woken.await;
    }
}
