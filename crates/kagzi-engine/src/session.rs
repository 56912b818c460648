//! A worker's open stream, as the engine sees it.

use std::{
    collections::{HashMap, VecDeque},
    sync::atomic::{AtomicU64, Ordering},
};

use kagzi_model::{LeaseRef, Name, RunId, WorkerId};
use kagzi_store::{Assignment, Demand, LostLease, RegistryError, SignalNotice};
use tokio::{sync::mpsc, time::Instant};

use crate::{Engine, EngineError, cut_off::Broken};

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
    /// Something was told to a run that the worker executes.
    Signalled(SignalNotice),
    /// Finish what you have, take nothing new.
    Drain,
    /// The worker opened another stream: this one is over.
    Replaced,
}

/// Runs and news for one connected worker. Ends itself when dropped: what never reached the worker is given
/// back, and what it holds it keeps for a grace, in which it may connect again.
pub struct Session {
    engine: Engine,
    pub worker: WorkerId,
    id: u64,
    types: Vec<Name>,
    deliver: mpsc::UnboundedSender<Assignment>,
    assignments: mpsc::UnboundedReceiver<Assignment>,
    events: mpsc::UnboundedReceiver<SessionEvent>,
    standing: Standing,
    /// What the worker holds, as far as it came or was confirmed through this stream.
    held: HashMap<RunId, u64>,
    undelivered: Vec<LeaseRef>,
    /// The stream ends because the worker or the server wants it to: no connection broke.
    farewell: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    By,
    /// The worker does not read what it was given.
    Paused,
    No,
}

/// What a session waits for.
#[derive(Debug)]
pub enum Next {
    /// Runs that were leased to the worker.
    Assigned(VecDeque<Assignment>),
    Event(SessionEvent),
}

impl Session {
    /// Connects a registered worker and stands by for its types. A draining one gets nothing new, but still
    /// news: it reconnects to report what it holds.
    pub async fn open(engine: &Engine, worker: WorkerId, types: Vec<Name>) -> Result<Session, EngineError> {
        let id = next_id();
        let (send_event, events) = mpsc::unbounded_channel();
        let (deliver, assignments) = mpsc::unbounded_channel();
        engine.hub().connect(worker, id, send_event);
        let mut session = Session {
            engine: engine.clone(),
            worker,
            id,
            types,
            deliver,
            assignments,
            events,
            standing: Standing::No,
            held: HashMap::new(),
            undelivered: Vec::new(),
            farewell: false,
        };
        session.stand_by().await?;
        Ok(session)
    }

    async fn stand_by(&mut self) -> Result<(), EngineError> {
        let demand = Demand {
            id: self.id,
            worker: self.worker,
            types: self.types.clone(),
            once: false,
            lease_ms: self.engine.settings().lease_ms(),
            deliver: self.deliver.clone(),
        };
        self.standing = match self.engine.store().stand_by(demand).await? {
            Ok(()) => Standing::By,
            Err(RegistryError::Draining(_)) => Standing::No,
            Err(refused) => return Err(refused.into()),
        };
        Ok(())
    }

    /// The next runs or the next piece of news.
    pub async fn next(&mut self) -> Next {
        tokio::select! {
            biased;
            Some(event) = self.events.recv() => {
                if let SessionEvent::Lost(lost) = &event {
                    self.let_go(lost.run, lost.epoch);
                }
                Next::Event(event)
            }
            Some(first) = self.assignments.recv() => {
                let mut batch = VecDeque::from([first]);
                while let Ok(more) = self.assignments.try_recv() {
                    batch.push_back(more);
                }
                Next::Assigned(batch)
            }
            // Both channels closed, which they are not while the session lives.
            else => std::future::pending().await,
        }
    }

    /// Takes no more runs. What was already leased still arrives.
    pub async fn stop_assigning(&mut self) -> Result<(), EngineError> {
        if std::mem::replace(&mut self.standing, Standing::No) == Standing::By {
            self.engine.store().withdraw(self.id).await?;
        }
        Ok(())
    }

    /// Takes no more runs until [`resume_assigning`](Session::resume_assigning).
    pub async fn pause_assigning(&mut self) -> Result<(), EngineError> {
        if self.standing == Standing::By {
            self.engine.store().withdraw(self.id).await?;
            self.standing = Standing::Paused;
        }
        Ok(())
    }

    /// Whether [`pause_assigning`](Session::pause_assigning) holds.
    pub fn is_paused(&self) -> bool {
        self.standing == Standing::Paused
    }

    /// Takes runs again after a pause.
    pub async fn resume_assigning(&mut self) -> Result<(), EngineError> {
        if self.standing == Standing::Paused {
            self.stand_by().await?;
        }
        Ok(())
    }

    /// The worker holds this lease, because it was delivered to it or because a heartbeat has renewed it.
    pub fn hold(&mut self, lease: &LeaseRef) {
        self.held.insert(lease.run, lease.epoch);
    }

    /// Whether the worker holds this lease, as far as this stream knows.
    pub fn holds(&self, lease: &LeaseRef) -> bool {
        self.held.get(&lease.run) == Some(&lease.epoch)
    }

    /// The worker does not hold the run any more.
    pub fn let_go(&mut self, run: RunId, epoch: u64) {
        if self.held.get(&run) == Some(&epoch) {
            self.held.remove(&run);
        }
    }

    /// Leases that will not reach the worker: given back when the session ends.
    pub fn undeliverable(&mut self, leases: impl IntoIterator<Item = LeaseRef>) {
        self.undelivered.extend(leases);
    }

    /// The stream ends because somebody wants it to: what the worker holds it keeps until it is stale.
    pub fn say_farewell(&mut self) {
        self.farewell = true;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let hub = self.engine.hub();
        let connected = hub.disconnect(self.worker, self.id);
        if connected && !self.farewell {
            let since = self.engine.clock().now();
            let due = Instant::now() + self.engine.settings().reconnect_grace;
            let runs = self.held.keys().copied().collect();
            hub.cut_off.begin(self.worker, Broken { since, due, runs });
        }
        self.assignments.close();
        let mut undelivered = std::mem::take(&mut self.undelivered);
        while let Ok(assignment) = self.assignments.try_recv() {
            undelivered.push(assignment.lease());
        }
        self.engine.abandon((self.standing == Standing::By).then_some(self.id), undelivered);
    }
}
