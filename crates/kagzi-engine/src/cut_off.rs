//! Workers whose connection broke. Unless one comes back within the grace, its runs go on elsewhere: a
//! process that was killed cannot come back, and fencing makes the takeover safe for one that can.
//!
//! The grace is real time of this process, apart from the clock of the store, which may be corrected.

use std::collections::HashMap;

use kagzi_model::{RunId, Timestamp, WorkerId};
use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

/// The workers that have a grace now.
#[derive(Default)]
pub struct CutOff {
    waiting: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Default)]
struct Waiting {
    workers: HashMap<WorkerId, Broken>,
    /// The server stops: connections that break now are its own doing.
    closed: bool,
}

/// A connection that broke.
#[derive(Debug, Clone)]
pub(crate) struct Broken {
    pub since: Timestamp,
    pub due: Instant,
    /// What the worker held: its running steps are forgotten with the grace, wherever it is by then.
    pub runs: Vec<RunId>,
}

impl CutOff {
    /// The worker's connection broke.
    pub(crate) fn begin(&self, worker: WorkerId, broken: Broken) {
        let mut waiting = self.waiting.lock();
        if !waiting.closed {
            waiting.workers.insert(worker, broken);
            self.changed.notify_one();
        }
    }

    /// Returns when one more has a grace.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The worker is back.
    pub(crate) fn end(&self, worker: WorkerId) {
        self.waiting.lock().workers.remove(&worker);
    }

    /// From now on no broken connection means anything.
    pub(crate) fn close(&self) {
        let mut waiting = self.waiting.lock();
        waiting.closed = true;
        waiting.workers.clear();
    }

    /// When the earliest grace is over.
    pub(crate) fn earliest(&self) -> Option<Instant> {
        self.waiting.lock().workers.values().map(|broken| broken.due).min()
    }

    pub(crate) fn take_due(&self, now: Instant) -> Vec<(WorkerId, Broken)> {
        self.waiting.lock().workers.extract_if(|_, broken| broken.due <= now).collect()
    }

    pub(crate) fn postpone(&self, due: Instant) {
        self.waiting.lock().workers.values_mut().for_each(|broken| broken.due = due);
    }
}
