//! How tries went, for the metrics.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::Channel;

/// Tries since the start, by the name of the channel and by what followed.
#[derive(Debug, Default)]
pub struct NoticeStats(Mutex<BTreeMap<(&'static str, &'static str), u64>>);

impl NoticeStats {
    /// Counts one.
    pub fn count(&self, channel: Channel, outcome: &'static str) {
        *self.0.lock().entry((channel.name(), outcome)).or_default() += 1;
    }

    /// Every count.
    pub fn read(&self) -> BTreeMap<(&'static str, &'static str), u64> {
        self.0.lock().clone()
    }
}
