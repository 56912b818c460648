//! One turn of a lane: a batch of messages becomes one transaction.
//!
//! The phases of [`Turn::run`], in their order:
//!
//! ```text
//! phase                     reads                      changes            why it stands there
//! load, find_all_business   runs and ids of the batch  cache of runs      in one go, before anything is
//!                                                                         decided: a round trip each would
//!                                                                         be the whole lane
//! look_at_workers           workers of the batch, on   cache of workers   a heartbeat must not be judged
//!                           a shared database                             by a row that is behind
//! returned, unanswered      -                          runs               what nobody holds goes back before
//!                                                                         anybody is given something
//! answer, one by one        what an answer needs       runs, entities,    in the order in which they came:
//!                                                      the board          each sees those before it
//! follow_ends               schedules of ended runs    schedules, runs    any answer may end a run, and what
//!                                                                         starts here may be claimed below
//! hear_kept_by_opened,      events that are kept       runs, events that  waits that opened and ends of
//! publish_failures                                     are kept           runs are known only now
//! count_all_leases,         workers and gates of       counts of leases,  after the last phase that ends
//! unblock_after_ended_...   leases that moved          the board          leases, before room is asked for
//! warm_up                   workers that stand by and  cache of workers   a worker that is not known has no
//!                           were forgotten                                room
//! give_out_fresh            controls                   runs               before the write: what starts and
//!                                                                         is claimed at once is written once
//! flush_before_search,      due runs                   runs, the board    the search must see what this
//! claim_backlog                                                           batch made due
//! write, require_versions,  -                          the database       last; nothing is answered before
//! commit                                                                  it, and Done says what is left
//! ```

mod applying;
mod business_ids;
mod claims;
mod controls;
mod counters;
mod done;
mod follow_up;
mod interventions;
mod loading;
mod look_ahead;
mod nouns;
mod registry;
mod retention;
mod roomiest;
mod schedules;
mod sweep;
mod topics;
mod unanswered_leases;

use kagzi_model::{Command, GateKey, Name, NounRow, RunId, Timestamp, WorkerId};

use self::registry::Leaving;
use crate::{
    AsideRow, Backend, LaneOptions, LaneStats, QueueKey, StoreError,
    cache::Cache,
    control_cache::ControlCache,
    demand_board::DemandBoard,
    fold::Fold,
    hash::{HashMap, HashSet},
    lane::Message,
    table::Table,
    worker_cache::WorkerCache,
};

pub use done::Done;
pub use interventions::Asking;
pub use sweep::SweepKind;
pub use unanswered_leases::UnansweredLease;

/// How long one turn does housekeeping. Everybody waits for it.
const HOUSEKEEPING_MAX: std::time::Duration = std::time::Duration::from_millis(100);

/// What the lane remembers from turn to turn.
pub struct Memory<'a> {
    pub cache: &'a mut Cache,
    pub worker_cache: &'a mut WorkerCache,
    pub board: &'a mut DemandBoard,
    pub controls: &'a mut ControlCache,
}

/// When a turn takes place.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    pub now: Timestamp,
    pub calendar: Timestamp,
}

/// A turn in progress.
pub struct Turn<'a, B> {
    now: Timestamp,
    /// What schedules go by: see [`crate::Clock::calendar`].
    calendar: Timestamp,
    /// Other servers write to the same database, so that memory may be behind it.
    shared: bool,
    /// Runs claimed in this turn; the rest follows in the next one.
    claim_len_max: usize,
    /// One row at a time, because something in an earlier attempt could not be stored.
    careful: bool,
    /// A start without a business id is looked for before it is decided. Nobody does so at first, which saves
    /// a read per start; but the run may exist, because the start was sent before and its answer was lost.
    look_first: bool,
    began: std::time::Instant,
    /// The row that the turn took up by itself, when it is careful: if the turn fails, it is the culprit.
    pub suspect: Option<AsideRow>,
    backend: &'a mut B,
    fold: Fold<'a>,
    worker_cache: &'a mut WorkerCache,
    board: &'a mut DemandBoard,
    controls: &'a mut ControlCache,
    /// Namespaces whose rules this turn relied on, on a shared database.
    consulted: HashSet<Name>,
    /// Gates that changed, or behind which leases ended.
    opened: HashSet<GateKey>,
    stats: &'a LaneStats,
    /// Polls that were served in this turn: they want one run only.
    served: HashSet<u64>,
    /// Keys that many workers watch, each with the workers by their room.
    roomiest: HashMap<QueueKey, roomiest::Roomiest>,
    assigned: Vec<(u64, RunId)>,
    /// Workers that were given runs since the last write, on a shared database.
    leased_to: HashSet<(Name, WorkerId)>,
    /// Workers that were compared with the database in this turn, and those that stand by here since this
    /// turn.
    compared: HashSet<WorkerId>,
    taken_in: HashSet<WorkerId>,
    /// Where the failure handlers of namespaces start, as far as this turn has asked.
    handler_queues: HashMap<Name, Option<Name>>,
    /// Keys whose backlog this turn looked at or gave runs of.
    looked: HashSet<QueueKey>,
    offline: Vec<WorkerId>,
    drained: Vec<WorkerId>,
    lease_moves_counted: usize,
    schedules: schedules::ScheduleChanges,
    /// Known for this turn alone: other servers change them too.
    nouns: Table<NounRow>,
    topics: topics::TopicTurn,
    /// Questions to people; only a turn that has to do with any has this.
    people: Option<Box<interventions::People>>,
    counters: counters::TurnCounters,
    /// Something was written. A turn that only looked for work is not counted as a commit.
    wrote: bool,
    /// The commit was asked for: from here on only the database knows whether it has happened.
    pub committing: bool,
    /// Commands decided so far.
    commands: u64,
    events_written: u64,
}

impl<'a, B: Backend> Turn<'a, B> {
    pub fn new(
        Moment { now, calendar }: Moment,
        options: LaneOptions,
        backend: &'a mut B,
        memory: Memory<'a>,
        stats: &'a LaneStats,
    ) -> Self {
        let Memory { cache, worker_cache, board, controls } = memory;
        let shared = options.shared_poll_ms.is_some();
        controls.begin(shared);
        worker_cache.begin();
        Turn {
            now,
            calendar,
            shared,
            claim_len_max: options.claim_len_max,
            careful: false,
            look_first: false,
            began: std::time::Instant::now(),
            suspect: None,
            backend,
            fold: Fold::new(now, options.kinds_level, cache),
            worker_cache,
            board,
            controls,
            consulted: HashSet::default(),
            opened: HashSet::default(),
            stats,
            served: HashSet::default(),
            roomiest: HashMap::default(),
            assigned: Vec::new(),
            leased_to: HashSet::default(),
            compared: HashSet::default(),
            taken_in: HashSet::default(),
            handler_queues: HashMap::default(),
            looked: HashSet::default(),
            offline: Vec::new(),
            drained: Vec::new(),
            lease_moves_counted: 0,
            schedules: schedules::ScheduleChanges::default(),
            nouns: Table::default(),
            topics: topics::TopicTurn::default(),
            people: None,
            counters: counters::TurnCounters::default(),
            wrote: false,
            committing: false,
            commands: 0,
            events_written: 0,
        }
    }

    /// The attempt failed: memory forgets what it relied on and what it made of it, and nothing else.
    /// Forgetting all would make the next attempt load every worker and look at every key, while its rows are
    /// locked.
    pub fn forget(mut self) {
        self.fold.forget_batch();
        self.worker_cache.forget_turn();
        self.controls.forget_turn(&self.consulted);
        self.looked.iter().for_each(|key| self.board.mark(Some(key)));
    }

    /// Takes up one row at a time, so that the one which cannot be stored is found.
    pub fn carefully(mut self) -> Self {
        self.careful = true;
        self.claim_len_max = 1;
        self
    }

    /// Looks for the runs that are to be started: an earlier attempt met one that exists.
    pub fn looking_first(mut self) -> Self {
        self.look_first = true;
        self
    }

    /// The turn has taken long enough: housekeeping goes on in the next one, and others come in between.
    fn is_late(&self) -> bool {
        self.began.elapsed() > HOUSEKEEPING_MAX
    }

    /// Everything between `begin` and the commit's return, phase by phase: the table above says why in this
    /// order.
    pub async fn run(
        &mut self,
        returned: &[Command],
        unanswered: &[UnansweredLease],
        batch: &mut [Message],
        claims: bool,
    ) -> Result<Done, StoreError> {
        self.backend.begin().await?;
        self.load(returned.iter().chain(batch.iter().flat_map(Message::commands))).await?;
        self.find_all_business(batch).await?;
        if self.shared {
            Box::pin(self.look_at_workers(batch)).await?;
            self.lock_named_topics(batch).await?;
        }
        for command in returned {
            // Refused when the run moved on meanwhile: then there is nothing to give back.
            let _ = self.apply(command).await?;
        }
        self.give_back_unanswered(unanswered).await?;
        for message in batch {
            self.answer(message).await?;
        }
        self.follow_going().await?;
        self.follow_ends().await?;
        if self.fold.has_opened_waits() {
            Box::pin(self.hear_kept_by_opened()).await?;
        }
        if self.has_failures() {
            Box::pin(self.publish_failures()).await?;
        }
        self.count_all_leases().await?;
        self.unblock_after_ended_leases().await?;
        if claims {
            self.warm_up().await?;
            self.give_out_fresh().await?;
            self.flush_before_search().await?;
            self.claim_backlog().await?;
        }
        self.write().await?;
        self.require_versions();
        // Where a crash makes the difference: the fault tests end the process at each of these two lines in
        // turn.
        tracing::trace!(target: "kagzi::commit", events = self.events_written, "committing");
        self.committing = true;
        self.backend.commit().await?;
        tracing::trace!(target: "kagzi::commit", events = self.events_written, "committed");
        if self.wrote {
            let micros = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.stats.committed(self.commands, micros);
            std::mem::take(&mut self.counters).count(self.stats);
        }
        Ok(self.done())
    }

    /// Answers a message. The answer is held back until the commit.
    async fn answer(&mut self, message: &mut Message) -> Result<(), StoreError> {
        match message {
            Message::Apply(ask) => {
                let mut outcomes = Vec::with_capacity(ask.request.len());
                for command in &ask.request {
                    outcomes.push(self.apply(command).await?);
                }
                ask.answer(outcomes);
            }
            Message::StandBy(ask) => ask.answer(self.stand_by(&ask.request).await?),
            Message::Withdraw(ask) => {
                self.board.remove(ask.request.0);
                ask.answer(());
            }
            Message::Register(ask) => ask.answer(self.register(&ask.request).await?),
            Message::Beat(ask) => ask.answer(self.beat(&ask.request).await?),
            Message::Drain(ask) => ask.answer(self.drain(ask.request.id).await?),
            Message::CutOff(ask) => ask.answer(self.cut_off(&ask.request).await?),
            Message::Deregister(ask) => ask.answer(self.leave(ask.request.id, Leaving::Politely).await?),
            Message::Offline(ask) => ask.answer(self.leave(ask.request.id, Leaving::Forced).await?),
            // Rare, and deep: in boxes, so that the future of an ordinary turn does not hold theirs.
            Message::Schedule(ask) => ask.answer(Box::pin(self.schedule(&ask.request)).await?),
            Message::Namespace(ask) => ask.answer(Box::pin(self.change_namespace(&ask.request)).await?),
            Message::Gate(ask) => ask.answer(Box::pin(self.change_gate(&ask.request)).await?),
            Message::Noun(ask) => ask.answer(Box::pin(self.change_noun(&*ask.request.0)).await?),
            Message::Publish(ask) => ask.answer(Box::pin(self.publish(&ask.request)).await?),
            Message::Intervention(ask) => {
                ask.answer(Box::pin(self.change_intervention(&ask.request)).await?);
            }
            Message::TakeNotices(ask) => ask.answer(Box::pin(self.take_notices(ask.request)).await?),
            Message::SettleNotice(ask) => {
                self.settle_notice(&ask.request);
                ask.answer(());
            }
            Message::Sweep(ask) => ask.answer(Box::pin(self.sweep(ask.request)).await?),
            Message::Wake { key } => self.board.mark(key.as_ref()),
            Message::Opened { gate } => self.board.unblock(gate),
            // The lane closes between turns, and answers then.
            Message::Close(_) => {}
        }
        Ok(())
    }

    /// Writes what this batch has changed so far, because the database is searched next: a search sees rows,
    /// and not what memory made of them.
    async fn flush_before_search(&mut self) -> Result<(), StoreError> {
        self.write().await
    }

    async fn write(&mut self) -> Result<(), StoreError> {
        self.count_all_leases().await?;
        let mut set = self.fold.drain();
        set.workers = self.worker_cache.drain();
        set.leased_to = self.leased_to.drain().collect();
        set.schedules = self.schedules.table.drain();
        set.namespaces = self.controls.namespaces.drain();
        set.gates = self.controls.gates.drain();
        set.nouns = self.nouns.drain();
        if !set.subscribed.is_empty() {
            self.controls.topics.somebody_listens();
        }
        let people = self.people.as_mut().map(|people| people.drain());
        set.people = people.filter(|people| !people.is_empty()).map(Box::new);
        if set.is_empty() {
            return Ok(());
        }
        self.wrote = true;
        self.events_written += set.events.len() as u64;
        LaneStats::add(&self.stats.events, set.events.len() as u64);
        self.backend.write(set).await
    }
}
