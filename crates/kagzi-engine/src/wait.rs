//! Waiting for the end of a run.

use std::time::Duration;

use kagzi_model::{Name, Rejection, RunId};
use kagzi_store::{Finished, RunView, StoreError};

use crate::{Engine, EngineError, hub::Told};

/// How long a waiter leaves a store alone that turned it away.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Engine {
    /// The run as soon as it has ended, or as it stands when it is paused or the timeout passes. That another
    /// server paused it is not told: whoever waits sees it when the timeout has passed.
    pub async fn wait(&self, namespace: &Name, id: RunId, timeout: Duration) -> Result<RunView, EngineError> {
        let until = self.clock().steady() + timeout.min(self.settings().wait_max);
        match self.wait_for_end(namespace, id, timeout).await? {
            Some(told) => Ok(told),
            None => self.read_until(namespace, id, until).await,
        }
    }

    /// Waits without reading any payload. `None` says that the run is to be read now: it has ended, it does
    /// not exist, it waits for a person, or the timeout has passed.
    ///
    /// A run that was started here is not looked for first. On PostgreSQL these reads were a quarter of all
    /// processor time under full load, for runs of which nearly all end here a moment later.
    pub async fn wait_for_end(
        &self,
        namespace: &Name,
        id: RunId,
        timeout: Duration,
    ) -> Result<Option<RunView>, EngineError> {
        // Steady time: how long a caller waits does not depend on what day it is.
        let until = self.clock().steady() + timeout.min(self.settings().wait_max);
        let mut waited = false;
        loop {
            // Subscribe, then look, then wait: an end in between would otherwise be missed. Ends on other
            // servers are looked for by the sweep `ends_elsewhere`, for all waiters together.
            let (mut waiting, live) = self.hub().subscribe(namespace, id);
            let mut turned_away = false;
            if waited || !live {
                let living = match self.store().living(&[(namespace.clone(), id)]).await {
                    Ok(living) => !living.is_empty(),
                    // After a failed commit everybody looks at once, and a store that is busy with it turns
                    // most of them away. Whoever waits already looks again instead.
                    Err(StoreError::Unavailable(_)) if waited => {
                        turned_away = true;
                        true
                    }
                    Err(error) => return Err(error.into()),
                };
                if !living {
                    self.hub().not_live(id);
                    return Ok(None);
                }
            }
            let left = until.saturating_sub(self.clock().steady());
            if left.is_zero() {
                return Ok(None);
            }
            let pause = if turned_away { left.min(LOOK_AGAIN) } else { left };
            tokio::select! {
                told = &mut waiting.end => match told {
                    Ok(Told::Finished(finished)) if finished.run.namespace == *namespace => {
                        let Finished { run, output } = *finished;
                        return Ok(Some(RunView { run, input: None, output }));
                    }
                    Ok(Told::Paused) => return Ok(None),
                    Ok(Told::Finished(_)) | Err(_) => {}
                },
                () = self.clock().sleep(pause) => {}
            }
            waited = true;
        }
    }

    /// Reads a run; a store that turns us away is asked again until the time is over.
    pub async fn read_until(
        &self,
        namespace: &Name,
        id: RunId,
        until: Duration,
    ) -> Result<RunView, EngineError> {
        loop {
            let view = self.read_run(namespace, id).await;
            let turned_away = matches!(view, Err(EngineError::Store(StoreError::Unavailable(_))));
            let left = until.saturating_sub(self.clock().steady());
            if !turned_away || left.is_zero() {
                return view;
            }
            self.clock().sleep(left.min(LOOK_AGAIN)).await;
        }
    }

    /// One run with its payloads, or a refusal that names it.
    pub async fn read_run(&self, namespace: &Name, id: RunId) -> Result<RunView, EngineError> {
        let found = self.store().run(namespace, id).await?;
        Ok(found.ok_or_else(|| Rejection::NotFound { run: id, namespace: namespace.clone() })?)
    }
}
