//! Waiting for the end of a run.

use std::time::Duration;

use kagzi_model::{Name, Rejection, RunId};
use kagzi_store::{RunView, StoreError};

use crate::{Engine, EngineError};

/// How often a waiter looks for itself where several servers share a database: another one may have ended the run, and its
/// hint may be lost.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Engine {
    /// The run as soon as it has ended, or as it stands when the timeout passes.
    ///
    /// A run that was started here is not read first. On PostgreSQL these reads were a quarter of all processor time under
    /// full load, for runs of which nearly all end here a moment later.
    pub async fn wait(&self, namespace: &Name, id: RunId, timeout: Duration) -> Result<RunView, EngineError> {
        // Steady time: how long a caller waits does not depend on what day it is.
        let until = self.clock().steady() + timeout.min(self.settings().wait_max);
        let subscribed = Subscribed { engine: self, id };
        let mut waited = false;
        loop {
            // Subscribe, then look, then wait: an end in between would otherwise be missed.
            let (mut end, live) = self.hub().subscribe(namespace, id);
            // Alone on the store, nobody else can end it.
            let mut look_again = self.store().shared();
            if waited || !live {
                let view = self.read_run(namespace, id).await;
                // After a failed commit everybody looks at once, and a store that is busy with it turns most of them away.
                // Whoever waits already looks again instead.
                let unread = waited && matches!(view, Err(EngineError::Store(StoreError::Unavailable(_))));
                let over = !unread && view.as_ref().map_or(true, |view| view.run.state.finished());
                if over {
                    self.hub().not_live(id);
                }
                if over || self.clock().steady() >= until {
                    return view;
                }
                look_again |= unread;
            }
            let left = until.saturating_sub(self.clock().steady());
            let pause = if look_again { left.min(LOOK_AGAIN) } else { left };
            tokio::select! {
                finished = &mut end => {
                    if let Ok(finished) = finished
                        && finished.run.namespace == *namespace
                    {
                        return Ok(RunView { run: finished.run, input: None, output: finished.output });
                    }
                }
                () = self.clock().sleep(pause) => {}
            }
            waited = true;
            drop(end);
            subscribed.engine.hub().unsubscribe(id);
        }
    }

    /// One run with its payloads, or a refusal that names it.
    pub async fn read_run(&self, namespace: &Name, id: RunId) -> Result<RunView, EngineError> {
        let found = self.store().run(namespace, id).await?;
        Ok(found.ok_or_else(|| Rejection::NotFound { run: id, namespace: namespace.clone() })?)
    }
}

/// Cleans up when the waiter leaves, however it leaves.
struct Subscribed<'a> {
    engine: &'a Engine,
    id: RunId,
}

impl Drop for Subscribed<'_> {
    fn drop(&mut self) {
        self.engine.hub().unsubscribe(self.id);
    }
}
