//! A store made of one lane and a set of reads.

use std::sync::Arc;

use async_trait::async_trait;
use kagzi_model::{
    Command, ControlRejection, Event, Gate, Name, Namespace, Payload, Run, RunId, Timestamp, WorkerId,
    schedule::{Schedule, ScheduleRejection, ScheduleRequest},
};

use crate::{
    Census, ControlCommand, ControlReads, ControlReply, Demand, Depth, EventOutline, EventPiece,
    EventRequest, LaneHandle, LaneStats, Outcome, Page, PageRequest, Reads, RegistryError, RunFilter,
    RunView, ScheduleFilter, ScheduleReads, ScheduleReply, ServerControls, Store, StoreError, SweepKind,
    Swept, Total, WorkerCommand, WorkerFilter, WorkerReply, WorkerView, lane::Message,
};

/// The [`Store`] of every back end that has one writer.
pub struct LaneStore<R> {
    lane: LaneHandle,
    reads: R,
    description: String,
}

impl<R> LaneStore<R> {
    pub fn new(lane: LaneHandle, reads: R, description: String) -> Self {
        LaneStore { lane, reads, description }
    }
}

#[async_trait]
impl<R: Reads> Store for LaneStore<R> {
    async fn apply(&self, commands: Vec<Command>) -> Result<Vec<Outcome>, StoreError> {
        self.lane.ask(|reply| Message::Apply { commands, reply }).await
    }

    async fn stand_by(&self, demand: Demand) -> Result<Result<(), RegistryError>, StoreError> {
        self.lane.ask(|reply| Message::StandBy { demand, reply }).await
    }

    async fn withdraw(&self, demand: u64) -> Result<(), StoreError> {
        self.lane.ask(|reply| Message::Withdraw { demand, reply }).await
    }

    async fn worker(&self, command: WorkerCommand) -> Result<Result<WorkerReply, RegistryError>, StoreError> {
        self.lane.ask(|reply| Message::Worker { command, reply }).await
    }

    async fn schedule(
        &self,
        request: ScheduleRequest,
    ) -> Result<Result<ScheduleReply, ScheduleRejection>, StoreError> {
        self.lane.ask(|reply| Message::Schedule { request: Box::new(request), reply }).await
    }

    async fn rule(
        &self,
        command: ControlCommand,
    ) -> Result<Result<ControlReply, ControlRejection>, StoreError> {
        self.lane.ask(|reply| Message::Controls { command, reply }).await
    }

    fn configure(&self, controls: ServerControls) {
        self.lane.configure(controls);
    }

    async fn sweep(&self, kind: SweepKind) -> Result<Swept, StoreError> {
        self.lane.ask(|reply| Message::Sweep { kind, reply }).await
    }

    fn stats(&self) -> Arc<LaneStats> {
        self.lane.stats()
    }

    fn shared(&self) -> bool {
        self.lane.shared()
    }

    fn describe(&self) -> String {
        self.description.clone()
    }

    async fn close(&self) {
        // Closed twice is closed.
        let _ = self.lane.ask(|reply| Message::Close { reply }).await;
    }
}

#[async_trait]
impl<R: Reads> ScheduleReads for LaneStore<R> {
    async fn schedule_by_id(&self, namespace: &Name, id: &Name) -> Result<Option<Schedule>, StoreError> {
        self.reads.schedule_by_id(namespace, id).await
    }

    async fn schedules(
        &self,
        namespace: &Name,
        filter: &ScheduleFilter,
        page: &PageRequest,
    ) -> Result<Page<Schedule>, StoreError> {
        self.reads.schedules(namespace, filter, page).await
    }
}

#[async_trait]
impl<R: Reads> Reads for LaneStore<R> {
    async fn run(&self, namespace: &Name, id: RunId) -> Result<Option<RunView>, StoreError> {
        self.reads.run(namespace, id).await
    }

    async fn living(&self, runs: &[(Name, RunId)]) -> Result<Vec<RunId>, StoreError> {
        self.reads.living(runs).await
    }

    fn has_peers(&self) -> bool {
        self.lane.shared() && self.reads.has_peers()
    }

    async fn run_by_business(
        &self,
        namespace: &Name,
        business_id: &Name,
    ) -> Result<Option<RunId>, StoreError> {
        self.reads.run_by_business(namespace, business_id).await
    }

    async fn runs_by_prefix(&self, namespace: &Name, digits: &str) -> Result<Vec<RunId>, StoreError> {
        self.reads.runs_by_prefix(namespace, digits).await
    }

    async fn runs(
        &self,
        namespace: &Name,
        filter: &RunFilter,
        page: &PageRequest,
    ) -> Result<Page<Run>, StoreError> {
        self.reads.runs(namespace, filter, page).await
    }

    async fn count_runs(&self, namespace: &Name, filter: &RunFilter) -> Result<Total, StoreError> {
        self.reads.count_runs(namespace, filter).await
    }

    async fn events(
        &self,
        namespace: &Name,
        run: RunId,
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        self.reads.events(namespace, run, after_seq, limit).await
    }

    async fn history(
        &self,
        namespace: &Name,
        run: RunId,
        request: &EventRequest,
    ) -> Result<EventPiece, StoreError> {
        self.reads.history(namespace, run, request).await
    }

    async fn replay(
        &self,
        namespace: &Name,
        run: RunId,
        request: &EventRequest,
    ) -> Result<EventPiece, StoreError> {
        self.reads.replay(namespace, run, request).await
    }

    async fn outline(
        &self,
        namespace: &Name,
        run: RunId,
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<EventOutline>, StoreError> {
        self.reads.outline(namespace, run, after_seq, limit).await
    }

    async fn payloads(
        &self,
        namespace: &Name,
        run: RunId,
        seqs: &[u64],
    ) -> Result<Vec<(u64, Payload)>, StoreError> {
        self.reads.payloads(namespace, run, seqs).await
    }

    async fn worker_by_id(&self, namespace: &Name, id: WorkerId) -> Result<Option<WorkerView>, StoreError> {
        self.reads.worker_by_id(namespace, id).await
    }

    async fn workers_by_prefix(&self, namespace: &Name, digits: &str) -> Result<Vec<WorkerId>, StoreError> {
        self.reads.workers_by_prefix(namespace, digits).await
    }

    async fn workers(
        &self,
        namespace: &Name,
        filter: &WorkerFilter,
        page: &PageRequest,
    ) -> Result<(Page<WorkerView>, Total), StoreError> {
        self.reads.workers(namespace, filter, page).await
    }

    async fn census(&self, now: Timestamp) -> Result<Census, StoreError> {
        self.reads.census(now).await
    }

    async fn oldest_transaction(&self) -> Result<Option<f64>, StoreError> {
        self.reads.oldest_transaction().await
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.reads.ping().await
    }
}

#[async_trait]
impl<R: Reads> ControlReads for LaneStore<R> {
    async fn namespace(&self, name: &Name) -> Result<Option<Namespace>, StoreError> {
        self.reads.namespace(name).await
    }

    async fn namespaces(&self, after: Option<&Name>, limit: usize) -> Result<Vec<Namespace>, StoreError> {
        self.reads.namespaces(after, limit).await
    }

    async fn gates(&self, namespace: &Name) -> Result<Vec<Gate>, StoreError> {
        self.reads.gates(namespace).await
    }

    async fn depths(&self, namespace: &Name, now: Timestamp) -> Result<Vec<Depth>, StoreError> {
        self.reads.depths(namespace, now).await
    }
}
