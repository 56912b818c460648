//! What a sweep that sleeps is woken by.

use kagzi_model::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Wakes its listener when something is due sooner than it knows.
pub(super) struct Alarm {
    earliest: Mutex<Timestamp>,
    sooner: Notify,
}

impl Default for Alarm {
    fn default() -> Self {
        Alarm { earliest: Mutex::new(Timestamp::MAX), sooner: Notify::new() }
    }
}

impl Alarm {
    pub(super) async fn before(&self, at: Timestamp) -> Timestamp {
        loop {
            let sooner = self.sooner.notified();
            {
                let mut earliest = self.earliest.lock();
                if *earliest < at {
                    return std::mem::replace(&mut *earliest, Timestamp::MAX);
                }
            }
            sooner.await;
        }
    }

    pub(super) fn ring(&self, at: Timestamp) {
        let mut earliest = self.earliest.lock();
        if at < *earliest {
            *earliest = at;
            self.sooner.notify_one();
        }
    }
}
