//! A worker's open stream, as the engine sees it.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicU64, Ordering},
};

use kagzi_model::{Name, WorkerId};
use kagzi_store::{Assignment, Demand, LostLease, RegistryError};
use tokio::sync::mpsc;

use crate::{Engine, EngineError};

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// A number that no other demand or session of this process has.
pub(crate) fn next_id() -> u64 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

/// News for a connected worker.
#[derive(Debug, Clone)]
pub enum SessionEvent {
    /// A lease was taken away: stop that run.
    Lost(LostLease),
    /// Finish what you have, take nothing new.
    Drain,
    /// The worker opened another stream: this one is over.
    Replaced,
}

/// Runs and news for one connected worker. Ends itself when dropped; leases stay with the worker until it
/// is stale.
pub struct Session {
    engine: Engine,
    pub worker: WorkerId,
    id: u64,
    assignments: mpsc::UnboundedReceiver<Assignment>,
    events: mpsc::UnboundedReceiver<SessionEvent>,
    standing: bool,
}

/// What a session waits for.
#[derive(Debug)]
pub enum Next {
    /// Runs that were leased to the worker.
    Assigned(VecDeque<Assignment>),
    Event(SessionEvent),
}

impl Session {
    /// Connects a registered worker and stands by for its types. A draining one gets nothing new, but still news:
    /// it reconnects to report what it holds.
    pub async fn open(engine: &Engine, worker: WorkerId, types: Vec<Name>) -> Result<Session, EngineError> {
        let id = next_id();
        let (send_event, events) = mpsc::unbounded_channel();
        let (deliver, assignments) = mpsc::unbounded_channel();
        engine.hub().connect(worker, id, send_event);
        let mut session =
            Session { engine: engine.clone(), worker, id, assignments, events, standing: false };
        let lease_ms = engine.settings().lease_ms();
        let demand = Demand { id, worker, types, once: false, lease_ms, deliver };
        session.standing = match engine.store().stand_by(demand).await? {
            Ok(()) => true,
            Err(RegistryError::Draining(_)) => false,
            Err(refused) => return Err(refused.into()),
        };
        Ok(session)
    }

    /// The next runs or the next piece of news.
    pub async fn next(&mut self) -> Next {
        tokio::select! {
            biased;
            Some(event) = self.events.recv() => Next::Event(event),
            Some(first) = self.assignments.recv() => {
                let mut batch = VecDeque::from([first]);
                while let Ok(more) = self.assignments.try_recv() {
                    batch.push_back(more);
                }
                Next::Assigned(batch)
            }
            // Both channels closed: the store dropped the demand because the worker drains. News may still come.
            else => std::future::pending().await,
        }
    }

    /// Takes no more runs. What was already leased still arrives.
    pub async fn stop_assigning(&mut self) -> Result<(), EngineError> {
        if std::mem::take(&mut self.standing) {
            self.engine.store().withdraw(self.id).await?;
        }
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.engine.hub().disconnect(self.worker, self.id);
        self.assignments.close();
        let mut undelivered = Vec::new();
        while let Ok(assignment) = self.assignments.try_recv() {
            undelivered.push(assignment.lease());
        }
        self.engine.abandon(self.standing.then_some(self.id), undelivered);
    }
}
