//! Takes the runs of workers whose connection broke and who did not come back within the grace.

use kagzi_model::WorkerId;
use kagzi_store::StoreError;
use tokio::time::{Duration, Instant};
use tracing::{debug, warn};

use super::{Sweep, When, leases::write_running_steps};
use crate::{Engine, EngineError, cut_off::Broken};

/// Whoever wakes so much later than asked for was not running meanwhile, and neither read who came back.
const LATE_MAX: Duration = Duration::from_millis(500);
/// When to try again after the store refused to take runs over.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

pub struct TakeOver;

impl Sweep for TakeOver {
    fn name(&self) -> &'static str {
        "cut_off"
    }

    async fn round(&mut self, engine: &Engine) -> Result<When, StoreError> {
        let (cut_off, now) = (&engine.hub().cut_off, Instant::now());
        if cut_off.earliest().is_some_and(|due| now > due + LATE_MAX) {
            warn!("the server itself was away, workers that were cut off have their grace once more");
            cut_off.postpone(now + engine.settings().reconnect_grace);
        }
        let due = cut_off.take_due(now);
        if !due.is_empty() {
            // What is known to have begun is an attempt of its step; so far it may be known to this memory
            // only.
            write_running_steps(engine, engine.clock().now()).await;
        }
        for (worker, broken) in due {
            take_over(engine, worker, broken).await;
        }
        let left = |due: Instant| When::Pause(due.saturating_duration_since(Instant::now()));
        Ok(cut_off.earliest().map_or(When::Called, left))
    }

    fn failed(&mut self, _: &Engine, _: &StoreError) -> When {
        When::Pause(AGAIN_AFTER)
    }

    async fn sooner(&self, engine: &Engine, _: When) -> When {
        engine.hub().cut_off.changed().await;
        When::In(Duration::ZERO)
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
