//! Workers whose connection broke. Unless one comes back within the grace, its runs go on elsewhere: a process that was
//! killed cannot come back, and fencing makes the takeover safe for one that can.
//!
//! The grace is real time of this process, apart from the clock of the store, which may be corrected.

use std::collections::HashMap;

use kagzi_model::{RunId, Timestamp, WorkerId};
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Duration, Instant},
};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::{Engine, EngineError, sweeper::write_running_steps};

/// Whoever wakes so much later than asked for was not running meanwhile, and neither read who came back.
const LATE_MAX: Duration = Duration::from_millis(500);
/// When to try again after the store refused to take runs over.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

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

    fn earliest(&self) -> Option<Instant> {
        self.waiting.lock().workers.values().map(|broken| broken.due).min()
    }

    fn take_due(&self, now: Instant) -> Vec<(WorkerId, Broken)> {
        self.waiting.lock().workers.extract_if(|_, broken| broken.due <= now).collect()
    }

    fn postpone(&self, due: Instant) {
        self.waiting.lock().workers.values_mut().for_each(|broken| broken.due = due);
    }
}

/// Runs until told to stop.
pub async fn run(engine: Engine, stop: CancellationToken) {
    let grace = engine.settings().reconnect_grace;
    loop {
        let cut_off = &engine.hub().cut_off;
        let due = cut_off.earliest();
        tokio::select! {
            () = stop.cancelled() => return,
            () = cut_off.changed.notified() => continue,
            () = until(due) => {}
        }
        let now = Instant::now();
        if due.is_some_and(|due| now > due + LATE_MAX) {
            warn!("the server itself was away, workers that were cut off have their grace once more");
            cut_off.postpone(now + grace);
            continue;
        }
        let due = cut_off.take_due(now);
        if !due.is_empty() {
            // What is known to have begun is an attempt of its step; so far it may be known to this memory only.
            write_running_steps(&engine, engine.clock().now()).await;
        }
        for (worker, broken) in due {
            take_over(&engine, worker, broken).await;
        }
    }
}

async fn take_over(engine: &Engine, worker: WorkerId, broken: Broken) {
    match engine.take_over(worker, broken.since).await {
        Ok(0) => debug!(%worker, "nothing to take over after a broken connection"),
        Ok(runs) => warn!(%worker, runs, "a worker's connection broke for good, its runs go on elsewhere"),
        Err(EngineError::Store(error)) => {
            warn!(%worker, %error, "could not take over the runs of a worker whose connection broke");
            let due = Instant::now() + AGAIN_AFTER;
            return engine.hub().cut_off.begin(worker, Broken { due, ..broken });
        }
        // It is not in the registry any more, so it holds nothing.
        Err(error) => debug!(%worker, %error, "nothing to take over after a broken connection"),
    }
    if !engine.hub().connected(worker) {
        broken.runs.into_iter().for_each(|run| engine.hub().running.forget(run));
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
