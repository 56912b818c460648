//! Waiting for the answer of a run to a request: a recorded step, on whichever server it was recorded.

use std::{collections::HashMap, sync::Arc, time::Duration};

use kagzi_model::{Event, EventKind, Name, Payload, Projection, RunId, RunKey, Status};
use kagzi_store::StoreError;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{Engine, EngineError, Outline};

/// Answers that were recorded through another server are looked for this often.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What became of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Answered {
    Reply(Payload),
    /// Not within the time; the request stays, and may be waited for again.
    NotYet,
    /// The run ended and did not answer.
    Ended(Status),
}

/// Those who wait for answers of runs, in this process.
#[derive(Default)]
pub(crate) struct Askers {
    runs: Mutex<HashMap<RunId, Arc<Notify>>>,
}

impl Askers {
    /// Something was recorded for whoever waits for this run.
    pub(crate) fn ring(&self, run: RunId) {
        if let Some(asked) = self.runs.lock().get(&run) {
            asked.notify_waiters();
        }
    }

    /// Nobody knows what was missed.
    pub(crate) fn ring_all(&self) {
        self.runs.lock().values().for_each(|asked| asked.notify_waiters());
    }

    fn join(&self, run: RunId) -> Asker<'_> {
        let rings = self.runs.lock().entry(run).or_default().clone();
        Asker { askers: self, run, rings }
    }
}

/// A place among them. It is left when it is dropped.
struct Asker<'a> {
    askers: &'a Askers,
    run: RunId,
    rings: Arc<Notify>,
}

impl Drop for Asker<'_> {
    fn drop(&mut self) {
        let mut runs = self.askers.runs.lock();
        // One is in the map, the other is ours.
        if Arc::strong_count(&self.rings) <= 2 {
            runs.remove(&self.run);
        }
    }
}

/// Finds the event that holds the answer.
struct Found {
    path: Name,
    seq: Option<u64>,
    last_seq: u64,
}

impl Projection for Found {
    fn absorb(&mut self, event: &Event) {
        self.last_seq = event.seq;
        if let EventKind::StepCompleted { step, .. } = &event.kind
            && *step == self.path
        {
            self.seq = Some(event.seq);
        }
    }
}

impl Engine {
    /// The answer that the run records at this path, as soon as it is there.
    pub async fn wait_for_reply(
        &self,
        run: &RunKey,
        path: Name,
        timeout: Duration,
    ) -> Result<Answered, EngineError> {
        let (namespace, id) = (&run.namespace, run.id);
        let until = self.clock().steady() + timeout.min(self.settings().wait_max);
        let asker = self.hub().askers.join(id);
        let mut found = Found { path, seq: None, last_seq: 0 };
        loop {
            // Listen, then look, then wait: an answer in between would otherwise be missed.
            let mut rung = std::pin::pin!(asker.rings.notified());
            rung.as_mut().enable();
            // Asked before the history is read: whatever an ended run has answered stands in it.
            let look = async {
                let ended = self.store().living(&[(namespace.clone(), id)]).await?.is_empty();
                let beyond = found.last_seq;
                let read = Outline::read(self, (namespace, id), found, beyond).await?;
                Ok::<_, EngineError>((ended, read.view))
            };
            let ended;
            (ended, found) = look.await?;
            if let Some(seq) = found.seq {
                let reply = self.payloads(namespace, id, &[seq]).await?.remove(&seq);
                return Ok(Answered::Reply(reply.unwrap_or_else(|| Payload::new(&b""[..]))));
            }
            if ended {
                let view = self.read_run(namespace, id).await?;
                return Ok(Answered::Ended(view.run.state.status()));
            }
            let left = until.saturating_sub(self.clock().steady());
            if left.is_zero() {
                return Ok(Answered::NotYet);
            }
            tokio::select! {
                () = rung => {}
                () = self.clock().sleep(left.min(LOOK_AGAIN)) => {}
            }
        }
    }

    /// The last value of this name that the run has published: where it is, when it was set, and the value.
    pub async fn value(&self, run: &RunKey, name: &Name) -> Result<Option<(Event, Payload)>, EngineError> {
        let view = LastValue { name: name.clone(), last: None };
        let read = Outline::read(self, (&run.namespace, run.id), view, 0).await?;
        let Some(event) = read.view.last else { return Ok(None) };
        let value = self.payloads(&run.namespace, run.id, &[event.seq]).await?.remove(&event.seq);
        let value = value.ok_or_else(|| {
            StoreError::Corrupt(format!("event {} of run {} has no payload", event.seq, run.id))
        })?;
        Ok(Some((event, value)))
    }
}

/// Finds the last value of a name.
struct LastValue {
    name: Name,
    last: Option<Event>,
}

impl Projection for LastValue {
    fn absorb(&mut self, event: &Event) {
        if let EventKind::ValueSet { name, .. } = &event.kind
            && *name == self.name
        {
            self.last = Some(event.clone());
        }
    }
}
