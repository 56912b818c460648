//! What the engine may ask of a store.

use std::time::Duration;

use kagzi_model::{
    GateKey, LeaseRef, Millis, Name, Payload, Registration, Rejection, Reply, Run, RunId, Timestamp,
    WorkerId, WorkerStatus,
};
use tokio::sync::mpsc::UnboundedSender;

use crate::QueueKey;

/// The answer to one command: accepted, or refused with the reason.
pub type Outcome = Result<Reply, Rejection>;

/// A worker that stands by for runs.
#[derive(Debug, Clone)]
pub struct Demand {
    /// Chosen by the caller, unique in the process.
    pub id: u64,
    pub worker: WorkerId,
    pub types: Vec<Name>,
    /// One run and then no more (a poll), or as many as the worker has free slots (a stream).
    pub once: bool,
    pub lease_ms: Millis,
    /// Unbounded, but never holds more than the worker's `max_concurrent`. A closed one gives the run back.
    pub deliver: UnboundedSender<Assignment>,
}

/// A run that was leased to a worker.
#[derive(Debug, Clone)]
pub struct Assignment {
    pub run: Run,
    /// The input, when the store had it at hand.
    pub input: Option<Payload>,
    /// No step is recorded yet, so there is no journal to read.
    pub fresh: bool,
}

impl Assignment {
    /// The lease it stands for.
    pub fn lease(&self) -> LeaseRef {
        LeaseRef { namespace: self.run.namespace.clone(), run: self.run.id, epoch: self.run.epoch }
    }
}

/// Adds a worker to the registry, or lets it come back.
#[derive(Debug, Clone)]
pub struct Register {
    pub id: WorkerId,
    pub registration: Registration,
}

/// Asks a worker to finish what it has and to take nothing new.
#[derive(Debug, Clone, Copy)]
pub struct Drain {
    pub id: WorkerId,
}

/// Its connection to this server broke at `since`: unless it was heard of after that, here or at another
/// server, its runs go on elsewhere. It stays in the registry until it has been silent for long enough.
/// Answered with how many runs go on.
#[derive(Debug, Clone, Copy)]
pub struct CutOff {
    pub id: WorkerId,
    pub since: Timestamp,
}

/// Takes the worker out and gives its runs back without counting as an attempt. Answered with how many.
#[derive(Debug, Clone, Copy)]
pub struct Deregister {
    pub id: WorkerId,
}

/// The same by an operator's word: the worker is told that it has lost its runs.
#[derive(Debug, Clone, Copy)]
pub struct Offline {
    pub id: WorkerId,
}

/// A heartbeat: a sign of life that renews the leases it lists.
#[derive(Debug, Clone)]
pub struct Beat {
    pub id: WorkerId,
    /// The namespace and task queue that the sender says the worker is of. An id alone proves nothing, since
    /// everybody can list them. None = the caller has compared them itself.
    pub of: Option<(Name, Name)>,
    pub runs: Vec<LeaseRef>,
    /// Runs of the same heartbeat that were listed before: a worker with thousands is heard piece by piece.
    pub listed_before: Vec<RunId>,
    pub lease_ms: Millis,
    /// Give back leases that the worker does not list and holds for at least this long: their delivery was
    /// lost. None = the transport cannot lose a delivery.
    pub unlisted_after_ms: Option<Millis>,
    /// The worker opens its stream again: whatever stands by for it is a stream that it does not read any
    /// more.
    pub reconnected: bool,
}

/// The answer to a heartbeat.
#[derive(Debug, Clone)]
pub struct BeatAnswer {
    pub status: WorkerStatus,
    /// Listed, but no longer the worker's, and why.
    pub lost: Vec<(LeaseRef, Rejection)>,
}

/// Time leapt forward: what was measured over it is longer than it lasted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leap {
    /// The time behind the leap.
    pub at: Timestamp,
    pub by: Duration,
}

impl Leap {
    /// When a time is over that was set before the leap to last until `until`.
    pub fn stretch(&self, since: Timestamp, until: Timestamp) -> Timestamp {
        if since < self.at { until + self.by } else { until }
    }
}

/// What a round of housekeeping did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swept {
    pub count: usize,
    /// More is waiting: sweep again at once.
    pub more: bool,
    /// When the next round has something to do, if known.
    pub next_at: Option<Timestamp>,
}

/// Is told of committed facts that somebody may be waiting for.
pub trait Observer: Send + Sync + 'static {
    /// A run ended.
    fn finished(&self, finished: Finished);
    /// A worker lost a lease through no act of its own.
    fn lease_lost(&self, lost: LostLease);
    /// A run waits for a person from now on: whoever waits for its end may want to know.
    fn paused(&self, _run: RunId) {}
    /// Something was told to a run that a worker executes: a wait in its code may ask for it. A hint.
    fn signalled(&self, _notice: SignalNotice) {}
    /// The run has answered a request: whoever waits for it should look.
    fn replied(&self, _run: RunId) {}
    /// A deadline, step timeout or lease now ends at this time, perhaps before any that was known.
    fn sweep_due(&self, _at: Timestamp) {}
    /// A schedule has something to do at this time, perhaps before any that was known. `changed`: because a
    /// person changed it, so that other servers do not know either.
    fn schedule_due(&self, _at: Timestamp, _changed: bool) {}
    /// An event was published: those who wait for it are to be told.
    fn events_due(&self) {}
    /// A question to a person has something to do at this time, perhaps before any that was known.
    fn question_due(&self, _at: Timestamp) {}
    /// Runs of these keys are due, or will be, and no worker here took them: another server may have room.
    /// Told only where several servers share a database.
    fn waiting(&self, _keys: Vec<Waiting>) {}
    /// A gate changed, or a lease behind a limited one ended: what waits behind it on another server may go
    /// on. Told only where several servers share a database.
    fn opened(&self, _gates: Vec<GateKey>) {}
    /// Runs ended through another server: whoever waits for one should look. A hint, and hints may be lost.
    fn ended_elsewhere(&self, _runs: &[RunId]) {}
    /// A commit failed, or only its answer was lost: ends may have happened that nobody was told of. Whoever
    /// waits should look.
    fn commit_unanswered(&self) {}
}

/// A key with runs that wait.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Waiting {
    pub key: QueueKey,
    /// Workers here stand by for it and are full: it will not wait long, other servers need not hurry.
    pub watched: bool,
}

/// A run that ended.
#[derive(Debug, Clone)]
pub struct Finished {
    pub run: Run,
    pub output: Option<Payload>,
}

/// A lease that was taken away.
#[derive(Debug, Clone)]
pub struct LostLease {
    pub worker: WorkerId,
    pub run: RunId,
    pub epoch: u64,
    pub why: String,
    pub cancelled: bool,
}

/// A signal for a run that a worker executes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalNotice {
    pub worker: WorkerId,
    pub run: RunId,
    pub epoch: u64,
    pub channel: Name,
}

/// Nobody listens.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Observer for Silent {
    fn finished(&self, _: Finished) {}
    fn lease_lost(&self, _: LostLease) {}
}
