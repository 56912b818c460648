//! The lane: one ordered stream of commands into one database connection.
//!
//! Batching is natural. While a commit is in flight the next batch collects in the channel; when idle, a
//! command commits at once. There is no timer and no added latency: one fsync simply serves whoever is
//! waiting.

mod after_commit;
mod attempt;
mod handle;
mod isolation;
mod message;
mod options;
mod queue;
mod waiting;

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use kagzi_model::Command;
use parking_lot::RwLock;
use tracing::error;

use self::{
    attempt::{Failed, Manner, PLAIN},
    queue::{Queue, queue},
    waiting::Wake,
};
use crate::{
    Backend, Clock, LaneStats, Observer, ServerControls, StoreError,
    cache::Cache,
    control_cache::ControlCache,
    demand_board::DemandBoard,
    turn::{Moment, UnansweredLease},
    worker_cache::WorkerCache,
};

pub use handle::LaneHandle;
pub use message::{Ask, Close, Message, Request, Withdraw};
pub use options::LaneOptions;

/// How long claims wait after a failed commit.
const CLAIMS_PAUSE: Duration = Duration::from_secs(1);

/// Payloads in one commit. A request with more is not split. PostgreSQL takes a gigabyte in one message at
/// the most.
const BATCH_BYTES_MAX: usize = 32 * 1024 * 1024;

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
            if let Some(at) = batch.iter().position(|message| matches!(message, Message::Close(_))) {
                let mut rest = batch.split_off(at).into_iter();
                let close = rest.next();
                self.worker_cache.pay_all();
                self.turn(batch).await;
                rest.for_each(|message| {
                    message.refuse(&StoreError::Unavailable("the store is closing".into()))
                });
                // Dropping the connection first lets the next opener in as soon as the caller returns.
                drop(self);
                if let Some(Message::Close(mut ask)) = close {
                    ask.answer(());
                    Message::Close(ask).send();
                }
                return;
            }
            self.turn(batch).await;
            self.stats.round_trips.store(self.backend.round_trips(), Relaxed);
            self.messages.give_room_back();
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
    async fn turn(&mut self, mut batch: Vec<Message>) {
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
        match self.attempt(moment, (&returned, &unanswered), &mut batch, manner).await {
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
}
