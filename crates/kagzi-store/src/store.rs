//! A durable store: one lane that writes, and a set of reads.

use std::{ops::Deref, sync::Arc};

use kagzi_model::{
    Command,
    schedule::{ScheduleRejection, ScheduleRequest},
};

use crate::{
    Demand, LaneHandle, LaneStats, Outcome, Reads, RegistryError, Request, ScheduleReply, ServerControls,
    StoreError, SweepKind, Swept,
    lane::{Close, Withdraw},
};

/// A durable store, whatever database is behind it.
///
/// - Nothing is answered before it is durable; an error means that nothing of the call was written, or that
///   it is not known, and every command may be sent again.
/// - Commands of one call are applied in order, each on its own: a refused one changes nothing and does not
///   disturb its neighbours.
///
/// What [`Reads`] offers can be called on it directly.
#[derive(Clone)]
pub struct Store {
    lane: LaneHandle,
    reads: Arc<dyn Reads>,
    description: Arc<str>,
}

impl Deref for Store {
    type Target = dyn Reads;

    fn deref(&self) -> &(dyn Reads + 'static) {
        &*self.reads
    }
}

impl Store {
    pub fn new(lane: LaneHandle, reads: impl Reads, description: String) -> Self {
        Store { lane, reads: Arc::new(reads), description: description.into() }
    }

    /// Asks for a change: of the registry, a namespace, a gate. Each request says what it is answered.
    pub async fn ask<R: Request>(&self, request: R) -> Result<R::Answer, StoreError> {
        self.lane.ask(request).await
    }

    /// Applies commands and answers each.
    pub async fn apply(&self, commands: Vec<Command>) -> Result<Vec<Outcome>, StoreError> {
        self.lane.ask(commands).await
    }

    /// Lets a worker stand by for runs. They are delivered as they are leased to it, never more at once than
    /// the worker's `max_concurrent`.
    pub async fn stand_by(&self, demand: Demand) -> Result<Result<(), RegistryError>, StoreError> {
        self.lane.ask(demand).await
    }

    /// Ends a demand. What was delivered before stays leased.
    pub async fn withdraw(&self, demand: u64) -> Result<(), StoreError> {
        self.lane.ask(Withdraw(demand)).await
    }

    /// Changes a schedule, or starts a run of one.
    pub async fn schedule(
        &self,
        request: ScheduleRequest,
    ) -> Result<Result<ScheduleReply, ScheduleRejection>, StoreError> {
        self.lane.ask(request).await
    }

    /// One bounded round of housekeeping.
    pub async fn sweep(&self, kind: SweepKind) -> Result<Swept, StoreError> {
        self.lane.ask(kind).await
    }

    /// Says what this server adds to the rules; before anything starts.
    pub fn configure(&self, controls: ServerControls) {
        self.lane.configure(controls);
    }

    /// Counters of the write path.
    pub fn stats(&self) -> Arc<LaneStats> {
        self.lane.stats()
    }

    /// Other servers may change the same runs: not every end of a run started here passes through here.
    pub fn shared(&self) -> bool {
        self.lane.shared()
    }

    /// Other servers write to the database at this moment, as far as is known.
    pub fn has_peers(&self) -> bool {
        self.lane.shared() && self.reads.has_peers()
    }

    /// What and where it is, for people: `sqlite:.kagzi/kagzi.db`.
    pub fn describe(&self) -> String {
        self.description.to_string()
    }

    /// Stops after the commit in flight; later calls are refused.
    pub async fn close(&self) {
        // Closed twice is closed.
        let _ = self.lane.ask(Close).await;
    }
}
