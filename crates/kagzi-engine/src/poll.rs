//! Waiting for one run, for workers without a stream.

use std::time::Duration;

use kagzi_model::{Name, WorkerId};
use kagzi_store::{Assignment, Demand};
use tokio::sync::mpsc;

use crate::{Engine, EngineError, session::next_id};

impl Engine {
    /// Leases the next due run of these types to the worker, or nothing within the timeout. What the run has
    /// recorded is not read: it may be more than one answer holds.
    pub async fn poll(
        &self,
        worker: WorkerId,
        types: Vec<Name>,
        timeout: Duration,
    ) -> Result<Option<Assignment>, EngineError> {
        let id = next_id();
        let (deliver, runs) = mpsc::unbounded_channel();
        let mut waiting = Waiting { engine: self.clone(), id, runs };
        let lease_ms = self.settings().lease_ms();
        self.store().stand_by(Demand { id, worker, types, once: true, lease_ms, deliver }).await??;
        Ok(tokio::select! {
            run = waiting.runs.recv() => run,
            () = self.clock().sleep(timeout.min(self.settings().wait_max)) => {
                // After the withdrawal nothing more arrives, but a run may have arrived just before.
                self.store().withdraw(id).await?;
                waiting.runs.try_recv().ok()
            }
        })
    }
}

/// A poll in progress. When its caller goes away, what was leased for it is given back.
struct Waiting {
    engine: Engine,
    id: u64,
    runs: mpsc::UnboundedReceiver<Assignment>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.runs.close();
        let undelivered = self.runs.try_recv().ok().map(|assignment| assignment.lease());
        self.engine.abandon(Some(self.id), undelivered.into_iter().collect());
    }
}
