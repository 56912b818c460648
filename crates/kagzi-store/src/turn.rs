//! One turn of a lane: a batch of messages becomes one transaction.

mod claims;
mod controls;
mod counters;
mod look_ahead;
mod registry;
mod retention;
mod schedules;
mod sweep;
mod unanswered_leases;

use kagzi_model::{
    Act, Attempted, Command, ControlRejection, GateKey, Name, Reclaimed, Rejection, Reply, Report, RunFailed,
    RunId, StartRun, State, Timestamp, WorkerId, handler_business_ids, namespace_handler,
    schedule::ScheduleRejection,
};

use crate::{
    AsideRow, Assignment, Backend, ControlReply, Finished, FoundBusiness, LaneOptions, LaneStats, Loaded,
    LostLease, Outcome, QueueKey, RegistryError, RunKey, ScheduleReply, StoreError, Swept, Waiting,
    WorkerReply,
    cache::Cache,
    control_cache::ControlCache,
    demand_board::DemandBoard,
    fold::{Fold, StartKey, Taken, stale_write},
    hash::{HashMap, HashSet},
    lane::Message,
    worker_cache::WorkerCache,
};

pub use unanswered_leases::UnansweredLease;

/// How long one turn does housekeeping. Everybody waits for it.
const HOUSEKEEPING_MAX: std::time::Duration = std::time::Duration::from_millis(100);

/// What a committed turn leaves to do.
#[derive(Default)]
pub struct Done {
    /// One per message, in order.
    pub answers: Vec<Answer>,
    pub assignments: Vec<(u64, Assignment)>,
    pub finished: Vec<Finished>,
    pub lost: Vec<LostLease>,
    pub rows: Vec<RunId>,
    /// The earliest time at which a run of this batch must be swept.
    pub sweep_at: Option<Timestamp>,
    /// The earliest time at which a changed schedule has something to do.
    pub schedule_at: Option<Timestamp>,
    /// A person changed a schedule.
    pub schedules_changed: bool,
    pub offline: Vec<WorkerId>,
    /// Workers that take nothing new from now on. Only after the commit: one whose drain was not recorded
    /// goes on.
    pub drained: Vec<WorkerId>,
    /// Keys with runs that nobody here took, on a shared database.
    pub waiting: Vec<Waiting>,
    /// Gates that may let something through now, on a shared database.
    pub opened: Vec<GateKey>,
}

/// An answer, held back until the commit.
pub enum Answer {
    Applied(Vec<Outcome>),
    StoodBy(Result<(), RegistryError>),
    Withdrawn,
    Worker(Result<WorkerReply, RegistryError>),
    Schedule(Box<Result<ScheduleReply, ScheduleRejection>>),
    Controls(Result<ControlReply, ControlRejection>),
    Swept(Swept),
    Woken,
}

impl Answer {
    /// Sends the answer to its asker, if it still listens.
    pub fn send(self, message: Message) {
        match (self, message) {
            (Answer::Applied(outcomes), Message::Apply { reply, .. }) => drop(reply.send(Ok(outcomes))),
            (Answer::StoodBy(answer), Message::StandBy { reply, .. }) => drop(reply.send(Ok(answer))),
            (Answer::Withdrawn, Message::Withdraw { reply, .. }) => drop(reply.send(Ok(()))),
            (Answer::Worker(answer), Message::Worker { reply, .. }) => drop(reply.send(Ok(answer))),
            (Answer::Schedule(answer), Message::Schedule { reply, .. }) => drop(reply.send(Ok(*answer))),
            (Answer::Controls(answer), Message::Controls { reply, .. }) => drop(reply.send(Ok(answer))),
            (Answer::Swept(swept), Message::Sweep { reply, .. }) => drop(reply.send(Ok(swept))),
            (Answer::Woken, Message::Wake { .. } | Message::Opened { .. }) => {}
            (_, _) => unreachable!("answers are made in the order of their messages"),
        }
    }
}

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
        if shared {
            controls.forget_counts();
        }
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

    /// Everything between `begin` and the commit's return.
    pub async fn run(
        &mut self,
        returned: &[Command],
        unanswered: &[UnansweredLease],
        batch: &[Message],
        claims: bool,
    ) -> Result<Done, StoreError> {
        self.backend.begin().await?;
        self.load(returned.iter().chain(batch.iter().flat_map(commands))).await?;
        self.find_all_business(batch).await?;
        if self.shared {
            Box::pin(self.look_at_workers(batch)).await?;
        }
        for command in returned {
            // Refused when the run moved on meanwhile: then there is nothing to give back.
            let _ = self.apply(command).await?;
        }
        self.give_back_unanswered(unanswered).await?;
        let mut answers = Vec::with_capacity(batch.len());
        for message in batch {
            answers.push(self.answer(message).await?);
        }
        self.follow_ends().await?;
        self.count_all_leases().await?;
        self.unblock_after_ended_leases().await?;
        if claims {
            self.warm_up().await?;
            self.give_out_fresh().await?;
            self.write().await?;
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
        Ok(self.done(answers))
    }

    async fn answer(&mut self, message: &Message) -> Result<Answer, StoreError> {
        Ok(match message {
            Message::Apply { commands, .. } => {
                let mut outcomes = Vec::with_capacity(commands.len());
                for command in commands {
                    outcomes.push(self.apply(command).await?);
                }
                Answer::Applied(outcomes)
            }
            Message::StandBy { demand, .. } => Answer::StoodBy(self.stand_by(demand).await?),
            Message::Withdraw { demand, .. } => {
                self.board.remove(*demand);
                Answer::Withdrawn
            }
            Message::Worker { command, .. } => Answer::Worker(self.worker(command).await?),
            // Rare, and deep: in boxes, so that the future of an ordinary turn does not hold theirs.
            Message::Schedule { request, .. } => {
                Answer::Schedule(Box::new(Box::pin(self.schedule(request)).await?))
            }
            Message::Controls { command, .. } => Answer::Controls(Box::pin(self.rule(command)).await?),
            Message::Sweep { kind, .. } => Answer::Swept(Box::pin(self.sweep(*kind)).await?),
            Message::Wake { key } => {
                self.board.mark(key.as_ref());
                Answer::Woken
            }
            Message::Opened { gate } => {
                self.board.unblock(gate);
                Answer::Woken
            }
            Message::Close { .. } => unreachable!("the lane closes between turns"),
        })
    }

    /// Loads in one go what the commands need and memory does not have.
    async fn load<'c>(&mut self, commands: impl Iterator<Item = &'c Command>) -> Result<(), StoreError> {
        let mut lacking = Vec::new();
        for command in commands {
            if !matches!(command.act, Act::Start(_)) && self.fold.lacks(command.run.id) {
                lacking.push(command.run.clone());
            }
        }
        self.load_runs(lacking).await
    }

    async fn load_runs(&mut self, mut keys: Vec<RunKey>) -> Result<(), StoreError> {
        keys.retain(|key| self.fold.lacks(key.id));
        keys.sort_unstable();
        keys.dedup();
        if keys.is_empty() {
            return Ok(());
        }
        let Loaded { runs, unreadable } = self.backend.load(&keys).await?;
        for aggregate in runs {
            let key = RunKey { id: aggregate.run.id, namespace: aggregate.run.namespace.clone() };
            match &aggregate.unknown {
                None => {
                    LaneStats::add(&self.stats.runs_loaded, 1);
                    LaneStats::add(&self.stats.events_loaded, aggregate.last_seq);
                    self.stats.aside.take_back(&AsideRow::Run(key));
                    self.fold.know(aggregate);
                }
                Some(kind) => {
                    let why = format!(
                        "its history has an event '{kind}' that this server does not understand: a newer \
                         server \
                         wrote it, or it is damaged"
                    );
                    self.stats.aside.put(AsideRow::Run(key), &why, self.now);
                }
            }
        }
        for (key, why) in unreadable {
            self.stats.aside.put(AsideRow::Run(key), &why, self.now);
        }
        Ok(())
    }

    /// Loads runs that the database named, although memory may think otherwise of them.
    async fn load_found(&mut self, keys: &[RunKey]) -> Result<(), StoreError> {
        if self.shared {
            for key in keys {
                self.fold.evict(key.id);
            }
        }
        self.load_runs(keys.to_vec()).await
    }

    /// Decides a command. A decision that writes is checked by the database: the row's version or the event's
    /// number is taken when another server was first. One that writes nothing, a refusal above all, is
    /// checked here: made from memory alone on a shared database, it is made again from the row.
    async fn decide(&mut self, command: &Command) -> Result<Outcome, StoreError> {
        if let Some(refused) = self.left_alone(command) {
            return Ok(Err(refused));
        }
        let outcome = self.fold.apply(command);
        // Heartbeats have compared their runs with the database already.
        let renewed = outcome.is_ok() && matches!(command.act, Act::Report { report: Report::Renew(_), .. });
        if self.shared && !renewed && self.fold.evict(command.run.id) {
            let key = command.run.clone();
            self.load_runs(vec![key]).await?;
            return Ok(self.fold.apply(command));
        }
        Ok(outcome)
    }

    /// A run that cannot be read here is not decided here.
    fn left_alone(&self, command: &Command) -> Option<Rejection> {
        if self.stats.aside.is_empty() || matches!(command.act, Act::Start(_)) {
            return None;
        }
        let key = command.run.clone();
        let note = self.stats.aside.why(&key).filter(|_| self.fold.lacks(key.id))?;
        Some(Rejection::Unreadable { run: key.id, why: note.why })
    }

    async fn apply(&mut self, command: &Command) -> Result<Outcome, StoreError> {
        let outcome = match self.prepare(command).await? {
            Ok(Some(filled)) => self.decide(&filled).await?,
            Ok(None) => self.decide(command).await?,
            Err(refused) => Err(refused),
        };
        self.follow_up().await?;
        self.count(command, &outcome);
        Ok(outcome)
    }

    fn count(&mut self, command: &Command, outcome: &Outcome) {
        self.commands += 1;
        LaneStats::add(&self.stats.commands, 1);
        match outcome {
            Ok(Reply::Attempted(Attempted::Retry { .. })) => LaneStats::add(&self.stats.step_retries, 1),
            Ok(
                Reply::RunFailed(RunFailed { retry_at: Some(_) })
                | Reply::Reclaimed(Reclaimed::TakenBack { at: Some(_) }),
            ) => LaneStats::add(&self.stats.run_retries, 1),
            Ok(
                Reply::Attempted(Attempted::Final { .. })
                | Reply::RunFailed(RunFailed { retry_at: None })
                | Reply::Reclaimed(_)
                | Reply::Started(_)
                | Reply::Claimed(_)
                | Reply::Begin(_)
                | Reply::Done(_)
                | Reply::Asleep(_)
                | Reply::Waited(_)
                | Reply::Signalled(_)
                | Reply::Blocked(_)
                | Reply::Ordered(_),
            ) => {}
            Err(rejection) => {
                LaneStats::add(&self.stats.refused, 1);
                if stale_write(command, rejection) {
                    LaneStats::add(&self.stats.refused_stale, 1);
                }
            }
        }
    }

    /// What a start needs before it is decided: the run that may have its business id, and the rules of its
    /// namespace. Answers with what these make of the start, if they fill any of its fields.
    async fn prepare(&mut self, command: &Command) -> Result<Result<Option<Command>, Rejection>, StoreError> {
        let Act::Start(start) = &command.act else { return Ok(Ok(None)) };
        self.find_business(start).await?;
        let admitted = self.admit(start).await?;
        Ok(admitted.map(|filled| filled.map(Command::start)))
    }

    /// Finds the run that may have the business id of a start, and loads it: without it the start would be
    /// decided as if the id were free.
    async fn find_business(&mut self, start: &StartRun) -> Result<(), StoreError> {
        let chosen = start.business_id.as_ref();
        if (chosen.is_none() && !self.look_first) || !self.fold.lacks_business(start) {
            return Ok(());
        }
        if let Some(id) = chosen {
            return self.look_up_business(vec![(start.namespace.clone(), id.clone())]).await;
        }
        let run = RunKey { id: start.id, namespace: start.namespace.clone() };
        let found = self.backend.input(&run).await?;
        if found.is_some() {
            self.load_runs(vec![run]).await?;
        }
        let taken = found.map(|input| Taken { id: start.id, input, run: None });
        self.fold.know_business(StartKey::of(start), taken);
        Ok(())
    }

    /// The same for all starts of a batch, and for the handlers of its failures, in one go.
    async fn find_all_business(&mut self, batch: &[Message]) -> Result<(), StoreError> {
        let (mut keys, mut handlers) = (Vec::new(), Vec::new());
        for command in batch.iter().flat_map(commands) {
            if let Act::Start(start) = &command.act
                && let Some(id) = &start.business_id
            {
                keys.push((start.namespace.clone(), id.clone()));
            }
            if self.shared && matches!(command.act, Act::Report { report: Report::Fail(_), .. }) {
                let of_handler = |id| (command.run.namespace.clone(), id);
                handlers.extend(handler_business_ids(command.run.id).map(of_handler));
            }
        }
        // One failure looks for its handlers itself, if it has any. Many would take a round trip each.
        if handlers.len() > 2 {
            keys.extend(handlers);
        }
        if keys.len() > 1 {
            keys.sort_unstable();
            keys.dedup();
        }
        self.look_up_business(keys).await
    }

    async fn look_up_business(&mut self, keys: Vec<(Name, Name)>) -> Result<(), StoreError> {
        if keys.is_empty() {
            return Ok(());
        }
        let found = self.backend.find_business(&keys).await?;
        let mut taken: Vec<Option<Taken>> = keys.iter().map(|_| None).collect();
        for FoundBusiness { place, id, input, run } in found {
            taken[place] = Some(Taken { id, input, run: Some(run) });
        }
        for ((namespace, id), taken) in keys.into_iter().zip(taken) {
            self.fold.know_business(StartKey::Business(namespace, id), taken);
        }
        Ok(())
    }

    /// Whether the business id of a start that the engine makes names a run of somebody else. Callers are
    /// refused such ids, but rows from before that rule may have them.
    pub(super) fn taken_by_another(&self, start: &StartRun) -> bool {
        self.fold.taken_by(start).is_some_and(|taken| taken.id != start.id)
    }

    /// Applies what belongs to a decision on other runs: a failed run and its handler exist together or not
    /// at all.
    async fn follow_up(&mut self) -> Result<(), StoreError> {
        for id in std::mem::take(&mut self.fold.failed) {
            let Some(entry) = self.fold.entry(id) else { continue };
            let namespace = entry.aggregate.run.namespace.clone();
            let Some(queue) = self.handler_queue(&namespace).await? else { continue };
            let entry = self.fold.entry(id).expect("known above");
            if let Some((start, event)) = namespace_handler(&entry.aggregate, queue) {
                self.fold.append(id, event);
                self.fold.follow.push(start);
            }
        }
        // A followed command has nothing to follow itself: handlers start no handlers.
        for mut command in std::mem::take(&mut self.fold.follow) {
            if let Act::Start(start) = &mut command.act {
                self.find_business(start).await?;
                if self.taken_by_another(start) {
                    // The id of a handler follows from the failed run, and so does its run id: without a
                    // business id there is still one handler, and the failed run's history names it.
                    let (namespace, id) = (&start.namespace, start.business_id.as_deref());
                    tracing::warn!(%namespace, id, run = %start.id, "a handler's business id is taken by \
                        another run");
                    start.business_id = None;
                }
                self.controls_in_use(&start.namespace.clone()).await?;
                if let Some(filled) = self.fill(start) {
                    **start = filled;
                }
            } else {
                let key = command.run.clone();
                self.load_runs(vec![key]).await?;
            }
            if let Err(rejection) = self.decide(&command).await? {
                let (namespace, run) = (&command.run.namespace, command.run.id);
                tracing::error!(%namespace, %run, %rejection, "could not follow up on a decision");
            }
        }
        Ok(())
    }

    async fn write(&mut self) -> Result<(), StoreError> {
        self.count_all_leases().await?;
        let mut set = self.fold.drain();
        set.workers = self.worker_cache.drain();
        set.leased_to = self.leased_to.drain().collect();
        set.schedules = self.schedules.drain();
        set.controls = self.controls.drain();
        if set.is_empty() {
            return Ok(());
        }
        self.wrote = true;
        self.events_written += set.events.len() as u64;
        LaneStats::add(&self.stats.events, set.events.len() as u64);
        self.backend.write(set).await
    }

    /// Keys whose changed runs are left to wait: now, or for a time at which nobody here may have room.
    fn waiting(&self) -> Vec<Waiting> {
        if !self.shared {
            return Vec::new();
        }
        let runs = self.fold.touched.rows.iter().filter_map(|id| self.fold.entry(*id));
        let keys: HashSet<Waiting> = runs
            .map(|entry| &entry.aggregate.run)
            .filter_map(|run| run.due_at().map(|due| (due, QueueKey::of(run))))
            .map(|(due, key)| (due, Waiting { watched: self.board.watches(&key), key }))
            // A timer that somebody here watches rings here.
            .filter(|(due, waiting)| *due <= self.now || !waiting.watched)
            // What a gate holds up here, it holds up everywhere.
            .filter(|(_, waiting)| !self.board.held(&waiting.key))
            .map(|(_, waiting)| waiting)
            .collect();
        keys.into_iter().collect()
    }

    fn done(&mut self, answers: Vec<Answer>) -> Done {
        let waiting = self.waiting();
        let opened = self.opened();
        let touched = std::mem::take(&mut self.fold.touched);
        let assignments = std::mem::take(&mut self.assigned)
            .into_iter()
            .filter_map(|(demand, id)| Some((demand, self.assignment(id)?)))
            .collect();
        LaneStats::add(&self.stats.leases_lost, touched.lost.len() as u64);
        let swept_at = |id: &RunId| self.fold.entry(*id).and_then(|entry| entry.aggregate.run.sweep_at());
        let sweep_at = touched.rows.iter().filter_map(swept_at).min();
        Done {
            answers,
            assignments,
            finished: touched.finished,
            lost: touched.lost,
            sweep_at,
            schedule_at: self.schedules.due_at,
            schedules_changed: self.schedules.changed,
            rows: touched.rows,
            offline: std::mem::take(&mut self.offline),
            drained: std::mem::take(&mut self.drained),
            waiting,
            opened,
        }
    }

    fn assignment(&self, id: RunId) -> Option<Assignment> {
        let entry = self.fold.entry(id)?;
        let run = entry.aggregate.run.clone();
        debug_assert!(matches!(run.state, State::Leased(_)), "an assigned run is leased");
        Some(Assignment { run, input: entry.input.clone(), fresh: entry.aggregate.steps.is_empty() })
    }
}

fn commands(message: &Message) -> &[Command] {
    match message {
        Message::Apply { commands, .. } => commands,
        Message::StandBy { .. }
        | Message::Withdraw { .. }
        | Message::Worker { .. }
        | Message::Schedule { .. }
        | Message::Controls { .. }
        | Message::Sweep { .. }
        | Message::Wake { .. }
        | Message::Opened { .. }
        | Message::Close { .. } => &[],
    }
}
