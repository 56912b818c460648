//! A clock for tests.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use kagzi_model::Timestamp;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::Clock;

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

impl ManualInner {
    fn move_to(&mut self, now: Timestamp) {
        self.now = now;
        let still = self.sleepers.split_off(&(Timestamp(now.0 + 1), 0));
        for (_, waker) in std::mem::replace(&mut self.sleepers, still) {
            // The sleeper may have given up; then nobody needs waking.
            let _ = waker.send(());
        }
    }
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
        inner.move_to(now);
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

    fn not_before(&self, newest: Timestamp) {
        let mut inner = self.inner.lock();
        if newest > inner.now {
            inner.move_to(newest);
        }
    }
}
