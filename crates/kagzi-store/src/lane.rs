//! The lane: one ordered stream of commands into one database connection.
//!
//! Batching is natural. While a commit is in flight the next batch collects in the channel; when idle, a
//! command commits at once. There is no timer and no added latency: one fsync simply serves whoever is
//! waiting.

mod isolation;
mod queue;

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use kagzi_model::{
    Command, ControlRejection, GateKey, Timestamp, act,
    schedule::{ScheduleRejection, ScheduleRequest},
};
use parking_lot::RwLock;
use tokio::sync::{mpsc, oneshot};
use tracing::{error, warn};

use crate::{
    AsideRow, Backend, Clock, ControlCommand, ControlReply, Demand, LaneStats, Observer, Outcome, QueueKey,
    RegistryError, ScheduleReply, ServerControls, StoreError, SweepKind, Swept, WorkerCommand, WorkerReply,
    cache::Cache,
    control_cache::ControlCache,
    demand_board::DemandBoard,
    lane::queue::{Queue, QueueSender, queue},
    turn::{Done, Memory, Moment, Turn, UnansweredLease},
    worker_cache::WorkerCache,
};

/// Bounds of a lane.
#[derive(Debug, Clone, Copy)]
pub struct LaneOptions {
    /// Messages that may wait; senders beyond it wait too.
    pub queue_len_max: usize,
    /// Commands folded into one commit (a request with more is not split), and runs claimed in it. Everybody
    /// waits for the commit that is under way, so its length is what a neighbour feels of a crowd; at 256 the
    /// fsync is below a tenth of its cost.
    pub batch_len_max: usize,
    /// The same while runs wait for workers. While a backlog exists, a client with one run in flight waits
    /// for commits full of other people's runs, so they are kept short. With 64 commands and 32 claims the
    /// p99 of such a client was 33 to 42 ms while 10,000 sleepers woke (39 to 69 with 256 and 128). For every
    /// turn, 64 would cost a tenth of the throughput of w3 (bench/RESULTS.md).
    pub crowd_len_max: usize,
    pub claim_len_max: usize,
    /// Other servers write to the same database: look for their work this often, even unasked.
    pub shared_poll_ms: Option<i64>,
    /// Events of a higher level are not written: a server of the version before would not understand them.
    pub kinds_level: u8,
}

/// How long claims wait after a failed commit.
const CLAIMS_PAUSE: Duration = Duration::from_secs(1);

/// Payloads in one commit. A request with more is not split. PostgreSQL takes a gigabyte in one message at
/// the most.
const BATCH_BYTES_MAX: usize = 32 * 1024 * 1024;

/// How often a batch is repeated when other servers keep changing its rows.
const CONFLICTS_MAX: usize = 5;

impl Default for LaneOptions {
    fn default() -> Self {
        LaneOptions {
            queue_len_max: 4096,
            batch_len_max: 256,
            crowd_len_max: 64,
            claim_len_max: 32,
            shared_poll_ms: None,
            kinds_level: kagzi_model::EventKind::LEVEL,
        }
    }
}

type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// What can be asked of a lane.
pub enum Message {
    Apply {
        commands: Vec<Command>,
        reply: Reply<Vec<Outcome>>,
    },
    StandBy {
        demand: Demand,
        reply: Reply<Result<(), RegistryError>>,
    },
    Withdraw {
        demand: u64,
        reply: Reply<()>,
    },
    Worker {
        command: WorkerCommand,
        reply: Reply<Result<WorkerReply, RegistryError>>,
    },
    Schedule {
        request: Box<ScheduleRequest>,
        reply: Reply<Result<ScheduleReply, ScheduleRejection>>,
    },
    Controls {
        command: ControlCommand,
        reply: Reply<Result<ControlReply, ControlRejection>>,
    },
    Sweep {
        kind: SweepKind,
        reply: Reply<Swept>,
    },
    /// Another server says that something became due; none = look everywhere.
    Wake {
        key: Option<QueueKey>,
    },
    /// Another server says that a gate may let something through.
    Opened {
        gate: GateKey,
    },
    Close {
        reply: Reply<()>,
    },
}

impl Message {
    fn len(&self) -> usize {
        match self {
            Message::Apply { commands, .. } => commands.len(),
            Message::Worker { command: WorkerCommand::Beat(beat), .. } => beat.runs.len().max(1),
            Message::StandBy { .. }
            | Message::Withdraw { .. }
            | Message::Worker { .. }
            | Message::Schedule { .. }
            | Message::Controls { .. }
            | Message::Sweep { .. }
            | Message::Wake { .. }
            | Message::Opened { .. }
            | Message::Close { .. } => 1,
        }
    }

    /// Bytes of the payloads that it carries.
    fn bytes(&self) -> usize {
        match self {
            Message::Apply { commands, .. } => commands.iter().map(Command::payload_bytes).sum(),
            Message::Schedule { request, .. } => request.payload_bytes(),
            Message::StandBy { .. }
            | Message::Withdraw { .. }
            | Message::Worker { .. }
            | Message::Controls { .. }
            | Message::Sweep { .. }
            | Message::Wake { .. }
            | Message::Opened { .. }
            | Message::Close { .. } => 0,
        }
    }

    fn refuse(self, error: &StoreError) {
        // A caller that is gone needs no answer.
        match self {
            Message::Apply { reply, .. } => drop(reply.send(Err(error.clone()))),
            Message::StandBy { reply, .. } => drop(reply.send(Err(error.clone()))),
            Message::Withdraw { reply, .. } | Message::Close { reply } => {
                drop(reply.send(Err(error.clone())))
            }
            Message::Worker { reply, .. } => drop(reply.send(Err(error.clone()))),
            Message::Schedule { reply, .. } => drop(reply.send(Err(error.clone()))),
            Message::Controls { reply, .. } => drop(reply.send(Err(error.clone()))),
            Message::Sweep { reply, .. } => drop(reply.send(Err(error.clone()))),
            // The board is marked as a whole when a batch fails.
            Message::Wake { .. } | Message::Opened { .. } => {}
        }
    }
}

/// The sending side of a lane.
#[derive(Clone)]
pub struct LaneHandle {
    messages: QueueSender,
    stats: Arc<LaneStats>,
    shared: bool,
    server: Arc<RwLock<Arc<ServerControls>>>,
}

impl LaneHandle {
    /// Sends a message made with a fresh reply channel and waits for the answer.
    pub async fn ask<T>(&self, message: impl FnOnce(Reply<T>) -> Message) -> Result<T, StoreError> {
        let stopped = || StoreError::Unavailable("the store has stopped".into());
        let (reply, answer) = oneshot::channel();
        let message = message(reply);
        if !matches!(message, Message::Close { .. }) {
            self.stats.undamaged()?;
        }
        if !self.messages.send(message).await {
            return Err(stopped());
        }
        answer.await.map_err(|_| stopped())?
    }

    /// Passes on a hint that something became due elsewhere. Hints may be lost: polling is the truth.
    pub fn wake(&self, key: Option<QueueKey>) {
        if !self.messages.hint(Message::Wake { key }) {
            warn!("the lane is full or stopped, a wake-up was dropped");
        }
    }

    /// Passes on a hint that a gate opened elsewhere.
    pub fn opened(&self, gate: GateKey) {
        if !self.messages.hint(Message::Opened { gate }) {
            warn!("the lane is full or stopped, a wake-up was dropped");
        }
    }

    /// Says what this server adds to the rules, from the next batch on.
    pub fn configure(&self, controls: ServerControls) {
        *self.server.write() = Arc::new(controls);
    }

    pub fn stats(&self) -> Arc<LaneStats> {
        self.stats.clone()
    }

    /// Other servers write to the same database.
    pub fn shared(&self) -> bool {
        self.shared
    }
}

/// A batch that was not answered.
struct Failed {
    error: StoreError,
    /// Leases of the batch: they may exist or not.
    leases: Vec<UnansweredLease>,
    /// The commit may have happened, and only its answer was lost.
    commit_unanswered: bool,
    /// The one row that a careful turn took up by itself.
    suspect: Option<AsideRow>,
}

/// How an attempt goes about its batch.
#[derive(Debug, Clone, Copy)]
struct Manner {
    /// Waiting runs are given out too.
    claims: bool,
    /// What the engine takes up by itself, it takes up one at a time: so the row that cannot be stored is
    /// found.
    careful: bool,
}

/// Only what was asked for.
const PLAIN: Manner = Manner { claims: false, careful: false };

/// The receiving side: owns the connection.
pub struct Lane<B> {
    backend: B,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn Observer>,
    options: LaneOptions,
    messages: Queue,
    stats: Arc<LaneStats>,
    cache: Cache,
    worker_cache: WorkerCache,
    board: DemandBoard,
    controls: ControlCache,
    server: Arc<RwLock<Arc<ServerControls>>>,
    /// Leases whose worker was gone before the run could be delivered.
    returned: Vec<Command>,
    /// Leases of a turn whose commit was not answered.
    unanswered: Vec<UnansweredLease>,
    /// When to look for other servers' work next, in steady time: a clock that is corrected does not hold it
    /// up.
    poll_at: Option<Duration>,
    /// After a failed commit, claims wait a moment so that a sick database is not hammered. In steady time.
    claims_after: Duration,
}

impl<B: Backend> Lane<B> {
    /// A lane over a connection, and the handle that feeds it.
    pub fn new(
        backend: B,
        clock: Arc<dyn Clock>,
        observer: Arc<dyn Observer>,
        options: LaneOptions,
    ) -> (Self, LaneHandle) {
        let (send, messages) = queue(options.queue_len_max);
        let stats = Arc::new(LaneStats::default());
        let server: Arc<RwLock<Arc<ServerControls>>> = Arc::default();
        let lane = Lane {
            backend,
            clock,
            observer,
            options,
            messages,
            stats: stats.clone(),
            cache: Cache::default(),
            worker_cache: WorkerCache::new(options.shared_poll_ms.is_some()),
            board: DemandBoard::default(),
            controls: ControlCache::default(),
            server: server.clone(),
            returned: Vec::new(),
            unanswered: Vec::new(),
            poll_at: None,
            claims_after: Duration::ZERO,
        };
        (lane, LaneHandle { messages: send, stats, shared: options.shared_poll_ms.is_some(), server })
    }

    /// Runs until every handle is gone or the lane is closed.
    pub async fn run(mut self) {
        loop {
            let mut batch = Vec::new();
            match self.wait().await {
                Wake::Message(first) => self.collect(*first, &mut batch),
                Wake::Timer => {}
                Wake::Closed => break,
            }
            if let Some(at) = batch.iter().position(|message| matches!(message, Message::Close { .. })) {
                let mut rest = batch.split_off(at).into_iter();
                let close = rest.next();
                self.worker_cache.pay_all();
                self.turn(batch).await;
                rest.for_each(|message| {
                    message.refuse(&StoreError::Unavailable("the store is closing".into()))
                });
                if let Some(Message::Close { reply }) = close {
                    // Dropping the connection first lets the next opener in as soon as the caller returns.
                    drop(self);
                    drop(reply.send(Ok(())));
                }
                return;
            }
            self.turn(batch).await;
            self.stats.round_trips.store(self.backend.round_trips(), Relaxed);
            self.messages.give_room_back();
        }
    }

    async fn wait(&mut self) -> Wake {
        if self.stats.damage().is_some() {
            // Nothing is claimed any more; whoever asks is told why.
            return self.messages.recv().await.map_or(Wake::Closed, |asked| Wake::Message(Box::new(asked)));
        }
        let worker_cache = &self.worker_cache;
        let now = self.clock.now();
        let room = |demand: &Demand| worker_cache.room(demand);
        let cold = worker_cache.is_incomplete() && !self.board.workers().is_empty();
        let backlog = self.board.can_give(room);
        let owed = !self.returned.is_empty() || !self.unanswered.is_empty();
        let due = if cold || backlog || owed { Some(now) } else { self.board.next_due(room) };
        let steady = self.clock.steady();
        let poll_in = self.poll_at.map(|at| at.saturating_sub(steady));
        let held_for = self.claims_after.saturating_sub(steady);
        if due.is_none() && poll_in.is_none() {
            return self
                .messages
                .recv()
                .await
                .map_or(Wake::Closed, |message| Wake::Message(Box::new(message)));
        }
        let look = due.is_some_and(|due| due <= now) || poll_in.is_some_and(|left| left.is_zero());
        if look && held_for.is_zero() {
            return match self.messages.try_recv() {
                Ok(message) => Wake::Message(Box::new(message)),
                Err(mpsc::error::TryRecvError::Empty) => Wake::Timer,
                Err(mpsc::error::TryRecvError::Disconnected) => Wake::Closed,
            };
        }
        let clock = self.clock.clone();
        tokio::select! {
            biased;
            message = self.messages.recv() => {
                message.map_or(Wake::Closed, |message| Wake::Message(Box::new(message)))
            }
            () = pause(&*clock, Pause { held_for, due, poll_in }) => Wake::Timer,
        }
    }

    fn collect(&mut self, first: Message, batch: &mut Vec<Message>) {
        let len_max =
            if self.board.crowded() { self.options.crowd_len_max } else { self.options.batch_len_max };
        let (mut len, mut bytes) = (first.len(), first.bytes());
        batch.push(first);
        while len < len_max && bytes < BATCH_BYTES_MAX {
            let Ok(message) = self.messages.try_recv() else { break };
            len += message.len();
            bytes += message.bytes();
            batch.push(message);
        }
        self.stats.queue_len.store(self.messages.len() as u64, Relaxed);
    }

    /// One batch: load, fold, write, commit, answer.
    async fn turn(&mut self, batch: Vec<Message>) {
        if let Err(damaged) = self.stats.undamaged() {
            return batch.into_iter().for_each(|message| message.refuse(&damaged));
        }
        let moment = Moment { now: self.clock.now(), calendar: self.clock.calendar() };
        let (now, steady) = (moment.now, self.clock.steady());
        let returned = std::mem::take(&mut self.returned);
        let unanswered = std::mem::take(&mut self.unanswered);
        self.controls.server = self.server.read().clone();
        self.board.mark_due(now);
        if let Some(every_ms) = self.options.shared_poll_ms
            && self.poll_at.is_none_or(|at| at <= steady)
        {
            self.board.mark_all();
            self.poll_at = Some(steady + Duration::from_millis(every_ms.unsigned_abs()));
        }
        let manner = Manner { claims: steady >= self.claims_after, careful: false };
        match self.attempt(moment, (&returned, &unanswered), &batch, manner).await {
            Ok(done) => self.settle(batch, done),
            Err(failed) if failed.error.is_away() => {
                self.returned = returned;
                self.unanswered = unanswered;
                self.refuse(batch, failed);
            }
            Err(failed) => Box::pin(self.take_apart(moment, (returned, unanswered), batch, failed)).await,
        }
    }

    /// The store does not work at the moment: everybody is told so, and claims wait a moment so that it is
    /// not hammered.
    fn refuse(&mut self, batch: Vec<Message>, failed: Failed) {
        let Failed { error, leases, commit_unanswered, .. } = failed;
        error!(%error, commands = batch.len(), "batch not committed");
        self.stats.failed(self.clock.now());
        if let StoreError::Damaged(why) = &error {
            self.stats.damaged(why);
        }
        self.unanswered.extend(leases);
        self.claims_after = self.clock.steady() + CLAIMS_PAUSE;
        if commit_unanswered {
            self.observer.commit_unanswered();
        }
        batch.into_iter().for_each(|message| message.refuse(&error));
    }

    /// Runs the batch, again if another server changed its rows meanwhile. After an error memory knows
    /// nothing that the batch may have made of it.
    async fn attempt(
        &mut self,
        moment: Moment,
        (returned, unanswered): (&[Command], &[UnansweredLease]),
        batch: &[Message],
        manner: Manner,
    ) -> Result<Done, Failed> {
        let (mut conflicts, mut duplicate) = (0, false);
        loop {
            let memory = Memory {
                cache: &mut self.cache,
                worker_cache: &mut self.worker_cache,
                board: &mut self.board,
                controls: &mut self.controls,
            };
            let mut turn = Turn::new(moment, self.options, &mut self.backend, memory, &self.stats);
            if manner.careful {
                turn = turn.carefully();
            }
            if duplicate {
                turn = turn.looking_first();
            }
            let failed = match turn.run(returned, unanswered, batch, manner.claims).await {
                Ok(done) => return Ok(done),
                Err(error) => {
                    let (commit_unanswered, suspect) = (turn.committing, turn.suspect.take());
                    // Before the commit was asked for, there is nothing to be in doubt about.
                    let leases = if commit_unanswered { turn.unanswered() } else { Vec::new() };
                    let shared = self.options.shared_poll_ms.is_some();
                    let changes_controls =
                        batch.iter().any(|message| matches!(message, Message::Controls { .. }));
                    let all = !shared || changes_controls || error.is_away();
                    if !all {
                        turn.forget();
                    }
                    (Failed { error, leases, commit_unanswered, suspect }, all)
                }
            };
            let (failed, forget_all) = failed;
            self.backend.rollback().await;
            if forget_all {
                self.cache.clear();
                self.worker_cache.clear();
                self.controls.clear();
                // What the failed attempt claimed is waiting again.
                self.board.mark_all();
            }
            match &failed.error {
                StoreError::Conflict(why) | StoreError::Duplicate(why) if conflicts < CONFLICTS_MAX => {
                    tracing::debug!(why, "repeating a batch");
                    LaneStats::add(&self.stats.conflicts, 1);
                    conflicts += 1;
                    duplicate |= matches!(failed.error, StoreError::Duplicate(_));
                }
                _ => return Err(failed),
            }
        }
    }

    /// After the commit: answer everybody, hand out the runs, tell whoever listens.
    fn settle(&mut self, batch: Vec<Message>, done: Done) {
        for (message, answer) in batch.into_iter().zip(done.answers) {
            answer.send(message);
        }
        for (demand, assignment) in done.assignments {
            let lease = assignment.lease();
            // The demand is gone after its first undeliverable run; the others of this turn are given back
            // too.
            let standing = self.board.demand(demand);
            let once = standing.is_some_and(|standing| standing.once);
            let gone = standing.is_none_or(|standing| standing.deliver.send(assignment).is_err());
            if gone {
                let namespace = &lease.namespace;
                warn!(%namespace, run = %lease.run, "worker left before its run arrived, giving it back");
                let why = "the worker left before the run arrived".to_owned();
                self.returned.push(lease.report(act::Release { why }));
            }
            if gone || once {
                self.board.remove(demand);
            }
        }
        done.finished.into_iter().for_each(|finished| self.observer.finished(finished));
        done.lost.into_iter().for_each(|lost| self.observer.lease_lost(lost));
        if let Some(at) = done.sweep_at {
            self.observer.sweep_due(at);
        }
        if let Some(at) = done.schedule_at {
            self.observer.schedule_due(at, done.schedules_changed);
        }
        if !done.waiting.is_empty() {
            self.observer.waiting(done.waiting);
        }
        if !done.opened.is_empty() {
            self.observer.opened(done.opened);
        }
        done.rows.into_iter().for_each(|id| self.cache.settle(id));
        self.cache.make_room();
        self.controls.make_room();
        done.drained.into_iter().for_each(|id| self.board.remove_worker(id));
        done.offline.into_iter().for_each(|id| {
            self.board.remove_worker(id);
            self.worker_cache.settle(id);
        });
    }
}

/// What a lane without messages waits for.
struct Pause {
    /// First of all until claims are allowed again,
    held_for: Duration,
    /// then until a run is due by the shared clock,
    due: Option<Timestamp>,
    /// or until it is time to look for other servers' work.
    poll_in: Option<Duration>,
}

async fn pause(clock: &dyn Clock, pause: Pause) {
    if !pause.held_for.is_zero() {
        clock.sleep(pause.held_for).await;
    }
    let due = async {
        match pause.due {
            Some(at) => clock.sleep_until(at).await,
            None => std::future::pending().await,
        }
    };
    let poll = async {
        match pause.poll_in {
            Some(left) => clock.sleep(left.saturating_sub(pause.held_for)).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = due => {}
        () = poll => {}
    }
}

enum Wake {
    Message(Box<Message>),
    Timer,
    Closed,
}
