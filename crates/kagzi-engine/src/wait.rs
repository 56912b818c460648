//! Waiting for the end of a run.

use std::time::Duration;

use kagzi_model::{Name, Rejection, RunId};
use kagzi_store::RunView;

use crate::{Engine, EngineError};

/// How often a waiter looks for itself: another server may have ended the run.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Engine {
    /// The run as soon as it has ended, or as it stands when the timeout passes.
    pub async fn wait(&self, namespace: &Name, id: RunId, timeout: Duration) -> Result<RunView, EngineError> {
        let until = self.clock().now() + timeout.min(self.settings().wait_max);
        let subscribed = Subscribed { engine: self, id };
        loop {
            // Subscribe, then look, then wait: an end in between would otherwise be missed.
            let (mut end, live) = self.hub().subscribe(id);
            if !live {
                let view = self.read_run(namespace, id).await?;
                if view.run.state.finished() || self.clock().now() >= until {
                    return Ok(view);
                }
            }
            let look_again = (self.clock().now() + LOOK_AGAIN).min(until);
            tokio::select! {
                finished = &mut end => {
                    if let Ok(finished) = finished
                        && finished.run.namespace == *namespace
                    {
                        return Ok(RunView { run: finished.run, input: None, output: finished.output });
                    }
                }
                () = self.clock().sleep_until(look_again) => {
                    if live && self.clock().now() >= until {
                        return self.read_run(namespace, id).await;
                    }
                }
            }
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
