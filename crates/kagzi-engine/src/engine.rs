//! The engine: what a transport may ask for.

use std::sync::Arc;

use kagzi_model::{
    Act, Answer, Author, Command, Ends, Lease, LeaseRef, Name, Order, Registration, Reply, Report, Rule,
    RunId, RunKey, StartRun, Started, Timestamp, Worker, WorkerId, act,
    schedule::{ScheduleCommand, ScheduleRequest},
};
use kagzi_store::{
    Beat, BeatAnswer, Clock, CutOff, Deregister, Drain, Outcome, Register, ScheduleReply, Store,
};
use tokio_util::sync::CancellationToken;
use tracing::warn;
use uuid::Uuid;

use crate::{
    EngineError, Hub, RunningStep, SessionEvent, Settings,
    settings::millis,
    sweeps::{self, Sweeping},
};

/// Leases that one message renews.
const BEAT_PIECE_LEN: usize = 1_000;

/// A running engine. Cloning shares it.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    hub: Arc<Hub>,
    settings: Settings,
    started_at: kagzi_model::Timestamp,
    stop: CancellationToken,
    sweeps: tokio::sync::Mutex<Vec<Sweeping>>,
}

impl Engine {
    /// Starts the engine over a store that was opened with the same clock and hub.
    pub fn start(store: Arc<Store>, clock: Arc<dyn Clock>, hub: Arc<Hub>, settings: Settings) -> Self {
        store.configure(settings.controls());
        let inner = Inner {
            store,
            started_at: clock.now(),
            clock,
            hub,
            settings,
            stop: CancellationToken::new(),
            sweeps: tokio::sync::Mutex::default(),
        };
        let engine = Engine { inner: Arc::new(inner) };
        let started = sweeps::start(&engine, &engine.inner.stop);
        *engine.inner.sweeps.try_lock().expect("nobody else has the engine yet") = started;
        engine
    }

    /// The server is about to stop: connections that break from now on are its own doing, and nobody is taken
    /// for dead.
    pub fn prepare_to_stop(&self) {
        self.hub().cut_off.close();
    }

    /// Stops housekeeping and closes the store after the commit in flight.
    pub async fn stop(&self) {
        self.prepare_to_stop();
        self.inner.stop.cancel();
        for sweep in std::mem::take(&mut *self.inner.sweeps.lock().await) {
            sweep.ended().await;
        }
        self.inner.store.close().await;
    }

    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    pub fn clock(&self) -> &dyn Clock {
        &*self.inner.clock
    }

    pub fn hub(&self) -> &Hub {
        &self.inner.hub
    }

    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// How long the engine has run.
    pub fn uptime(&self) -> std::time::Duration {
        self.clock().now() - self.inner.started_at
    }

    /// A new id. Time-ordered, so that neighbours in time are neighbours on disk.
    pub fn new_run_id() -> RunId {
        RunId(Uuid::now_v7())
    }

    /// Starts runs, each answered on its own.
    pub async fn start_runs(&self, starts: Vec<StartRun>) -> Result<Vec<Outcome>, EngineError> {
        let ids: Vec<_> = starts.iter().map(|start| start.id).collect();
        starts.iter().for_each(|start| self.hub().starting(start.id, start.namespace.clone()));
        let commands = starts.into_iter().map(Command::start).collect();
        let outcomes = self.store().apply(commands).await;
        let started =
            |outcome: &Outcome| matches!(outcome, Ok(Reply::Started(Started { existed: false, .. })));
        for (at, id) in ids.iter().enumerate() {
            if !outcomes.as_ref().is_ok_and(|outcomes| started(&outcomes[at])) {
                self.hub().not_live(*id);
            }
        }
        Ok(outcomes?)
    }

    /// Changes a schedule, or starts a run of one.
    pub async fn schedule(&self, request: ScheduleRequest) -> Result<ScheduleReply, EngineError> {
        if matches!(request.command, ScheduleCommand::Create(_)) {
            self.has_room_for_schedule(&request.key).await?;
        }
        Ok(self.store().schedule(request).await??)
    }

    /// Applies commands, each answered on its own.
    pub async fn apply(&self, commands: Vec<Command>) -> Result<Vec<Outcome>, EngineError> {
        let mut ended = Vec::new();
        commands.iter().for_each(|command| note_ended(command, &mut ended));
        let outcomes = self.store().apply(commands).await?;
        for (run, step) in ended {
            match step {
                Some(step) => self.hub().running.end(run, &step),
                None => self.hub().running.forget(run),
            }
        }
        Ok(outcomes)
    }

    /// Applies one command.
    pub async fn apply_one(&self, command: Command) -> Result<Reply, EngineError> {
        let mut outcomes = self.apply(vec![command]).await?;
        Ok(outcomes.pop().expect("one command has one outcome")?)
    }

    /// A worker reports under its lease, and is told what the report's rule answers.
    pub async fn report<R>(&self, lease: &LeaseRef, report: R) -> Result<R::Reply, EngineError>
    where
        R: Rule<Sender = Lease, Reply: Answer> + Into<Report>,
    {
        self.apply_one(lease.report(report)).await.map(answer)
    }

    /// A person gives an order about a run, and is told what the order's rule answers.
    pub async fn order<R>(&self, run: RunKey, by: Author, order: R) -> Result<R::Reply, EngineError>
    where
        R: Rule<Sender = Author, Reply: Answer> + Into<Order>,
    {
        self.apply_one(run.order(by, order)).await.map(answer)
    }

    /// A worker says that a step began: for people who look, not for the record.
    pub fn step_started(&self, run: RunId, step: RunningStep) {
        self.hub().running.begin(run, step);
    }

    /// Steps that run now under this lease.
    pub fn running_steps(&self, run: RunId, epoch: u64) -> Vec<RunningStep> {
        self.hub().running.of(run, epoch)
    }

    /// A new id for a worker that brings none.
    pub fn new_worker_id() -> WorkerId {
        WorkerId(Uuid::now_v7())
    }

    /// Adds a worker to the registry.
    pub async fn register(&self, id: WorkerId, registration: Registration) -> Result<Worker, EngineError> {
        self.has_room_for(id, &registration.namespace).await?;
        Ok(self.store().ask(Register { id, registration }).await??)
    }

    /// A sign of life. What the worker should know of and does not list is given back, as `delivery` says.
    pub async fn beat(
        &self,
        id: WorkerId,
        runs: Vec<LeaseRef>,
        delivery: Delivery,
    ) -> Result<BeatAnswer, EngineError> {
        let settings = self.settings();
        let unlisted_after_ms = match delivery {
            Delivery::Ordered => None,
            Delivery::MayBeLost => Some(millis(settings.heartbeat_interval)),
        };
        let lease_ms = settings.lease_ms();
        self.send_beat(Beat {
            id,
            of: None,
            runs,
            lease_ms,
            unlisted_after_ms,
            reconnected: false,
            listed_before: Vec::new(),
        })
        .await
    }

    /// A worker of this namespace and task queue opens its stream again. What it does not list it does not
    /// execute: that is given back, and nothing is leased into its former stream any more.
    pub async fn reconnect(
        &self,
        id: WorkerId,
        of: (Name, Name),
        runs: Vec<LeaseRef>,
    ) -> Result<BeatAnswer, EngineError> {
        let lease_ms = self.settings().lease_ms();
        let beat = Beat {
            id,
            of: Some(of),
            runs,
            lease_ms,
            unlisted_after_ms: Some(0),
            reconnected: true,
            listed_before: Vec::new(),
        };
        self.send_beat(beat).await
    }

    /// A worker with thousands of runs is heard piece by piece: everybody waits for the commit that is under
    /// way, and others come in between. What it does not list is given back with the last piece, when all
    /// that it lists is known.
    async fn send_beat(&self, mut beat: Beat) -> Result<BeatAnswer, EngineError> {
        let mut lost = Vec::new();
        while beat.runs.len() > BEAT_PIECE_LEN {
            let rest = beat.runs.split_off(BEAT_PIECE_LEN);
            let piece = Beat { unlisted_after_ms: None, ..beat.clone() };
            lost.extend(self.send_piece(piece).await?.lost);
            beat.listed_before.extend(beat.runs.iter().map(|lease| lease.run));
            beat.runs = rest;
            // Once is enough: by the second piece nothing stands by for its former stream.
            beat.reconnected = false;
        }
        let mut answer = self.send_piece(beat).await?;
        lost.append(&mut answer.lost);
        Ok(BeatAnswer { lost, ..answer })
    }

    async fn send_piece(&self, beat: Beat) -> Result<BeatAnswer, EngineError> {
        Ok(self.store().ask(beat).await??)
    }

    /// Asks a worker to finish what it has and take nothing new.
    pub async fn drain(&self, id: WorkerId) -> Result<Worker, EngineError> {
        let worker = self.store().ask(Drain { id }).await??;
        self.hub().tell(id, SessionEvent::Drain);
        Ok(worker)
    }

    /// Takes a worker out of the registry; its runs are given back without counting as an attempt.
    pub async fn deregister(&self, id: WorkerId) -> Result<u32, EngineError> {
        Ok(self.store().ask(Deregister { id }).await??)
    }

    /// Lets the runs of a worker go on elsewhere whose connection broke at `since`, unless it was heard of
    /// after that.
    pub(crate) async fn take_over(&self, id: WorkerId, since: Timestamp) -> Result<u32, EngineError> {
        Ok(self.store().ask(CutOff { id, since }).await??)
    }

    /// Ends a demand whose owner is gone and gives back what never reached it. Called from `Drop`, so it
    /// cannot wait: a task does the work, and should it fail, the next heartbeat or the lease's end does it.
    pub(crate) fn abandon(&self, demand: Option<u64>, undelivered: Vec<LeaseRef>) {
        if demand.is_none() && undelivered.is_empty() {
            return;
        }
        let engine = self.clone();
        let task = async move {
            if let Some(demand) = demand
                && let Err(error) = engine.store().withdraw(demand).await
            {
                warn!(%error, "could not withdraw a demand");
            }
            let why = "the worker left before the run arrived";
            let give_back = |lease: LeaseRef| lease.report(act::Release { why: why.to_owned() });
            if !undelivered.is_empty()
                && let Err(error) =
                    engine.store().apply(undelivered.into_iter().map(give_back).collect()).await
            {
                warn!(%error, "could not give runs back");
            }
        };
        // No runtime means that the process ends; leases then run out by themselves.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(task);
        }
    }
}

/// The one place where a reply is told apart: the type of an act's reply is that of its rule.
fn answer<A: Answer>(reply: Reply) -> A {
    A::of(reply).expect("an act is answered by its own rule")
}

/// How runs reach a worker, which decides what its silence about one means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// By an open stream: nothing is lost while it lives.
    Ordered,
    /// By unary replies: what is not listed after a while never arrived.
    MayBeLost,
}

/// The steps that a command ends, or the whole run (`None`), for the list of running steps.
fn note_ended(command: &Command, ended: &mut Vec<(RunId, Option<Name>)>) {
    let Act::Report { report, .. } = &command.act else { return };
    let run = command.run.id;
    match report.ends() {
        Ends::Nothing => {}
        Ends::Step(step) => ended.push((run, Some(step.clone()))),
        Ends::Steps(steps) => ended.extend(steps.iter().map(|result| (run, Some(result.step.path.clone())))),
        Ends::Lease => ended.push((run, None)),
    }
}
