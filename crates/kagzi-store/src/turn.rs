//! One turn of a lane: a batch of messages becomes one transaction.

use std::collections::HashSet;

use kagzi_model::{
    Command, LeaseRef, Registration, RunId, State, Timestamp, Worker, WorkerId, WorkerStatus,
    namespace_handler,
};

use crate::{
    Assignment, Backend, Beat, BeatAnswer, Demand, DueQuery, Finished, LaneStats, LostLease, Outcome,
    QueueKey, RegistryError, RunKey, StoreError, SweepKind, Swept, Waiting, WorkerCommand, WorkerReply,
    cache::Cache,
    fold::{Fold, stale_write},
    lane::Message,
    roster::Roster,
    standing::Board,
};

/// Runs claimed for one key in one turn; the rest follows in the next.
const CLAIM_LEN_MAX: usize = 512;
/// Runs and workers swept in one turn.
const SWEEP_LEN_MAX: usize = 500;

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
    pub offline: Vec<WorkerId>,
    /// Keys with runs that nobody here took, on a shared database.
    pub waiting: Vec<Waiting>,
}

/// An answer, held back until the commit.
pub enum Answer {
    Applied(Vec<Outcome>),
    StoodBy(Result<(), RegistryError>),
    Withdrawn,
    Worker(Result<WorkerReply, RegistryError>),
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
            (Answer::Swept(swept), Message::Sweep { reply, .. }) => drop(reply.send(Ok(swept))),
            (Answer::Woken, Message::Wake { .. }) => {}
            (_, _) => unreachable!("answers are made in the order of their messages"),
        }
    }
}

/// A turn in progress.
pub struct Turn<'a, B> {
    now: Timestamp,
    /// Other servers write to the same database, so that memory may be behind it.
    shared: bool,
    backend: &'a mut B,
    fold: Fold<'a>,
    roster: &'a mut Roster,
    board: &'a mut Board,
    stats: &'a LaneStats,
    /// Polls that were served in this turn: they want one run only.
    served: HashSet<u64>,
    assigned: Vec<(u64, RunId)>,
    offline: Vec<WorkerId>,
    lease_moves_counted: usize,
    /// Something was written. A turn that only looked for work is not counted as a commit.
    wrote: bool,
}

impl<'a, B: Backend> Turn<'a, B> {
    pub fn new(
        now: Timestamp,
        shared: bool,
        backend: &'a mut B,
        cache: &'a mut Cache,
        roster: &'a mut Roster,
        board: &'a mut Board,
        stats: &'a LaneStats,
    ) -> Self {
        Turn {
            now,
            shared,
            backend,
            fold: Fold::new(now, cache),
            roster,
            board,
            stats,
            served: HashSet::new(),
            assigned: Vec::new(),
            offline: Vec::new(),
            lease_moves_counted: 0,
            wrote: false,
        }
    }

    /// Everything between `begin` and the commit's return.
    pub async fn run(
        &mut self,
        returned: &[Command],
        batch: &[Message],
        claims: bool,
    ) -> Result<Done, StoreError> {
        let started = std::time::Instant::now();
        self.backend.begin().await?;
        self.load(returned.iter().chain(batch.iter().flat_map(commands))).await?;
        for command in returned {
            // Refused when the run moved on meanwhile: then there is nothing to give back.
            let _ = self.apply(command).await?;
        }
        let mut answers = Vec::with_capacity(batch.len());
        for message in batch {
            answers.push(self.answer(message).await?);
        }
        self.count_all_leases().await?;
        if claims {
            self.warm_up().await?;
            self.give_out_fresh().await?;
            self.write().await?;
            self.claim_backlog().await?;
        }
        self.write().await?;
        self.backend.commit().await?;
        if self.wrote {
            LaneStats::add(&self.stats.commits, 1);
            LaneStats::add(&self.stats.commit_micros, started.elapsed().as_micros() as u64);
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
            Message::Sweep { kind, .. } => Answer::Swept(self.sweep(*kind).await?),
            Message::Wake { key } => {
                self.board.mark(key.as_ref());
                Answer::Woken
            }
            Message::Close { .. } => unreachable!("the lane closes between turns"),
        })
    }

    /// Loads in one go what the commands need and memory does not have.
    async fn load<'c>(&mut self, commands: impl Iterator<Item = &'c Command>) -> Result<(), StoreError> {
        let mut lacking = Vec::new();
        for command in commands {
            if !matches!(command, Command::Start(_)) && self.fold.lacks(command.run()) {
                lacking.push(RunKey { run: command.run(), namespace: command.namespace().clone() });
            }
        }
        self.load_runs(lacking).await
    }

    async fn load_runs(&mut self, mut keys: Vec<RunKey>) -> Result<(), StoreError> {
        keys.retain(|key| self.fold.lacks(key.run));
        keys.sort_unstable();
        keys.dedup();
        if !keys.is_empty() {
            for aggregate in self.backend.load(&keys).await? {
                self.fold.know(aggregate);
            }
        }
        Ok(())
    }

    /// Loads runs that the database named, although memory may think otherwise of them.
    async fn load_found(&mut self, keys: &[RunKey]) -> Result<(), StoreError> {
        if self.shared {
            for key in keys {
                self.fold.doubt(key.run);
            }
        }
        self.load_runs(keys.to_vec()).await
    }

    /// Decides a command. A decision that writes is checked by the database: the row's version or the event's
    /// number is taken when another server was first. One that writes nothing, a refusal above all, is checked
    /// here: made from memory alone on a shared database, it is made again from the row.
    async fn decide(&mut self, command: &Command) -> Result<Outcome, StoreError> {
        let outcome = self.fold.apply(command);
        // Heartbeats have compared their runs with the database already.
        let renewed = outcome.is_ok() && matches!(command, Command::Renew { .. });
        if self.shared && !renewed && self.fold.doubt(command.run()) {
            let key = RunKey { run: command.run(), namespace: command.namespace().clone() };
            self.load_runs(vec![key]).await?;
            return Ok(self.fold.apply(command));
        }
        Ok(outcome)
    }

    async fn apply(&mut self, command: &Command) -> Result<Outcome, StoreError> {
        if let Command::Start(start) = command
            && *start.business_id != *start.id.to_string()
            && self.fold.lacks_business(&start.namespace, &start.business_id)
        {
            let found = self.backend.find_business(&start.namespace, &start.business_id).await?;
            if let Some((id, _)) = &found {
                let key = RunKey { run: *id, namespace: start.namespace.clone() };
                self.load_runs(vec![key]).await?;
            }
            self.fold.know_business(start.namespace.clone(), start.business_id.clone(), found);
        }
        let outcome = self.decide(command).await?;
        self.follow_up().await?;
        LaneStats::add(&self.stats.commands, 1);
        if let Err(rejection) = &outcome {
            LaneStats::add(&self.stats.refused, 1);
            if stale_write(command, rejection) {
                LaneStats::add(&self.stats.refused_stale, 1);
            }
        }
        Ok(outcome)
    }

    /// Applies what belongs to a decision on other runs: a failed run and its handler exist together or not
    /// at all.
    async fn follow_up(&mut self) -> Result<(), StoreError> {
        for id in std::mem::take(&mut self.fold.failed) {
            let Some(entry) = self.fold.entry(id) else { continue };
            let namespace = entry.aggregate.run.namespace.clone();
            let Some(queue) = self.backend.handler_queue(&namespace).await? else { continue };
            let entry = self.fold.entry(id).expect("known above");
            if let Some((start, event)) = namespace_handler(&entry.aggregate, queue) {
                self.fold.append(id, event);
                self.fold.follow.push(start);
            }
        }
        // A followed command has nothing to follow itself: handlers start no handlers.
        for command in std::mem::take(&mut self.fold.follow) {
            if let Command::Start(start) = &command {
                let found = self.backend.find_business(&start.namespace, &start.business_id).await?;
                self.fold.know_business(start.namespace.clone(), start.business_id.clone(), found);
            } else {
                let key = RunKey { run: command.run(), namespace: command.namespace().clone() };
                self.load_runs(vec![key]).await?;
            }
            if let Err(rejection) = self.decide(&command).await? {
                tracing::error!(run = %command.run(), %rejection, "could not follow up on a decision");
            }
        }
        Ok(())
    }

    async fn stand_by(&mut self, demand: &Demand) -> Result<Result<(), RegistryError>, StoreError> {
        self.refresh_worker(demand.worker).await?;
        let worker = match self.roster.online(demand.worker) {
            Ok(worker) => worker,
            Err(refused) => return Ok(Err(refused)),
        };
        let registration = &worker.registration;
        if let Some(name) = demand.types.iter().find(|name| !registration.workflow_types.contains(name)) {
            let name = name.clone();
            return Ok(Err(RegistryError::UnknownType { worker: demand.worker, name }));
        }
        self.board.add(&registration.namespace, &registration.task_queue, demand.clone());
        Ok(Ok(()))
    }

    async fn load_worker(&mut self, id: WorkerId) -> Result<(), StoreError> {
        if !self.roster.contains(id)
            && let Some(worker) = self.backend.load_worker(id).await?
        {
            let active = self.backend.leased_by(id).await?.len();
            self.roster.insert(worker, u32::try_from(active).unwrap_or(u32::MAX));
        }
        Ok(())
    }

    /// Loads a worker whose row or leases another server may have changed: somebody drained it there, or took
    /// a run back.
    async fn refresh_worker(&mut self, id: WorkerId) -> Result<(), StoreError> {
        if self.shared {
            // No lease of this batch is counted twice: what is not counted yet is not written yet either.
            self.roster.doubt(id);
        }
        self.load_worker(id).await
    }

    async fn worker(
        &mut self,
        command: &WorkerCommand,
    ) -> Result<Result<WorkerReply, RegistryError>, StoreError> {
        match command {
            WorkerCommand::Register { id, registration } => {
                // Known already when the answer was lost and the worker asks again: it may hold runs.
                self.refresh_worker(*id).await?;
                Ok(Ok(self.register(*id, registration)))
            }
            WorkerCommand::Beat(beat) => self.beat(beat).await,
            WorkerCommand::Drain { id } => {
                self.refresh_worker(*id).await?;
                let status = self.roster.get(*id).map(|member| member.worker.status);
                match status {
                    None => Ok(Err(RegistryError::Unknown(*id))),
                    Some(WorkerStatus::Offline) => Ok(Err(RegistryError::Offline(*id))),
                    Some(WorkerStatus::Online | WorkerStatus::Draining) => {
                        self.roster.change(*id, |worker| worker.status = WorkerStatus::Draining);
                        self.board.remove_worker(*id);
                        let worker = self.roster.get(*id).expect("loaded above").worker.clone();
                        Ok(Ok(WorkerReply::Draining(worker)))
                    }
                }
            }
            WorkerCommand::Deregister { id } => {
                self.refresh_worker(*id).await?;
                if self.roster.get(*id).is_none() {
                    return Ok(Err(RegistryError::Unknown(*id)));
                }
                let released = self.take_offline(*id, Leaving::Politely).await?;
                Ok(Ok(WorkerReply::Deregistered { released }))
            }
        }
    }

    fn register(&mut self, id: WorkerId, registration: &Registration) -> WorkerReply {
        let known = self.roster.get(id);
        let active = known.map_or(0, |known| known.active);
        // Rises even while the clock stands: servers that share a database tell an old registration from a new
        // one by it, and let a drained or lost worker come back only with a new one.
        let after = known.map_or(Timestamp(0), |known| Timestamp(known.worker.registered_at.0 + 1));
        let worker = Worker {
            id,
            registration: registration.clone(),
            status: WorkerStatus::Online,
            completed_total: known.map_or(0, |known| known.worker.completed_total),
            failed_total: known.map_or(0, |known| known.worker.failed_total),
            registered_at: self.now.max(after),
            heartbeat_at: self.now,
            deregistered_at: None,
        };
        self.roster.insert(worker.clone(), active);
        self.roster.change(id, |_| ());
        WorkerReply::Registered(worker)
    }

    async fn beat(&mut self, beat: &Beat) -> Result<Result<WorkerReply, RegistryError>, StoreError> {
        self.refresh_worker(beat.id).await?;
        let status = match self.roster.get(beat.id).map(|member| member.worker.status) {
            None => return Ok(Err(RegistryError::Unknown(beat.id))),
            Some(WorkerStatus::Offline) => return Ok(Err(RegistryError::Offline(beat.id))),
            Some(status @ (WorkerStatus::Online | WorkerStatus::Draining)) => status,
        };
        let now = self.now;
        self.roster.change(beat.id, |worker| worker.heartbeat_at = now);
        let held = match self.shared || beat.unlisted_after_ms.is_some() {
            true => self.backend.leased_by(beat.id).await?,
            false => Vec::new(),
        };
        if self.shared {
            let held: HashSet<RunId> = held.iter().map(|key| key.run).collect();
            for lease in beat.runs.iter().filter(|lease| !held.contains(&lease.run)) {
                self.fold.doubt(lease.run);
            }
        }
        let listed = |lease: &LeaseRef| RunKey { run: lease.run, namespace: lease.namespace.clone() };
        self.load_runs(beat.runs.iter().map(listed).collect()).await?;
        let mut lost = Vec::new();
        for lease in &beat.runs {
            if let Err(rejection) = self.renew(lease, beat.lease_ms).await? {
                lost.push((lease.clone(), rejection));
            }
        }
        if let Some(after_ms) = beat.unlisted_after_ms {
            self.give_back_unlisted(beat, after_ms, held).await?;
        }
        Ok(Ok(WorkerReply::Beat(BeatAnswer { status, lost })))
    }

    /// Renews a lease once less than two thirds of it are left, so that most heartbeats write no run.
    async fn renew(&mut self, lease: &LeaseRef, lease_ms: i64) -> Result<Outcome, StoreError> {
        let lease_ms = self.lease_ms(lease.run, lease_ms);
        let held = self.fold.entry(lease.run).and_then(|entry| entry.aggregate.run.lease());
        let until = match held {
            Some(held) if held.until.remaining_ms(self.now) > lease_ms * 2 / 3 => held.until,
            Some(_) | None => self.now.plus_ms(lease_ms),
        };
        self.apply(&Command::Renew { lease: lease.clone(), until }).await
    }

    /// How long a lease of this run lasts: its own heartbeat timeout, or the server's length.
    fn lease_ms(&self, run: RunId, standard_ms: i64) -> i64 {
        let entry = self.fold.entry(run);
        entry.and_then(|entry| entry.aggregate.run.options.timeouts.heartbeat_ms).unwrap_or(standard_ms)
    }

    async fn give_back_unlisted(
        &mut self,
        beat: &Beat,
        after_ms: i64,
        held: Vec<RunKey>,
    ) -> Result<(), StoreError> {
        let listed: HashSet<RunId> = beat.runs.iter().map(|lease| lease.run).collect();
        let unlisted: Vec<_> = held.into_iter().filter(|key| !listed.contains(&key.run)).collect();
        self.load_found(&unlisted).await?;
        for RunKey { run: id, .. } in unlisted {
            let Some(run) = self.fold.entry(id).map(|entry| &entry.aggregate.run) else { continue };
            let old = run.lease().is_some_and(|lease| lease.since.plus_ms(after_ms) <= self.now);
            if old {
                let lease = LeaseRef { namespace: run.namespace.clone(), run: id, epoch: run.epoch };
                let why = "the worker does not know of it: its delivery was lost".to_owned();
                // Refused only when the run moved on in this very batch.
                let _ = self.apply(&Command::Release { lease, why }).await?;
            }
        }
        Ok(())
    }

    async fn take_offline(&mut self, id: WorkerId, how: Leaving) -> Result<u32, StoreError> {
        let now = self.now;
        self.roster.change(id, |worker| {
            worker.status = WorkerStatus::Offline;
            worker.deregistered_at = worker.deregistered_at.or(Some(now));
        });
        self.offline.push(id);
        let held = self.backend.leased_by(id).await?;
        self.load_found(&held).await?;
        let mut released = 0;
        for RunKey { run, .. } in held {
            let Some(entry) = self.fold.entry(run) else { continue };
            let row = &entry.aggregate.run;
            if row.lease().is_none_or(|lease| lease.worker != id) {
                continue;
            }
            let (namespace, epoch) = (row.namespace.clone(), row.epoch);
            let command = match how {
                Leaving::Politely => {
                    let why = "its worker left".to_owned();
                    Command::Release { lease: LeaseRef { namespace, run, epoch }, why }
                }
                Leaving::Lost => Command::Orphan { namespace, run, epoch },
            };
            released += u32::from(self.apply(&command).await?.is_ok());
        }
        Ok(released)
    }

    async fn sweep(&mut self, kind: SweepKind) -> Result<Swept, StoreError> {
        match kind {
            SweepKind::Expired => {
                // Rows of this batch must be visible to the search for expired ones.
                self.write().await?;
                let keys = self.backend.sweep_due(self.now, SWEEP_LEN_MAX).await?;
                let (count, more) = (keys.len(), keys.len() == SWEEP_LEN_MAX);
                self.load_found(&keys).await?;
                for RunKey { run, namespace } in keys {
                    // Refused only when the run is gone; then there is nothing to expire.
                    let _ = self.apply(&Command::Expire { namespace, run }).await?;
                }
                self.write().await?;
                Ok(Swept { count, more, next_at: self.backend.next_sweep().await? })
            }
            SweepKind::Deadlines => {
                self.write().await?;
                let keys = self.backend.sweep_due(self.now, SWEEP_LEN_MAX).await?;
                self.load_found(&keys).await?;
                let mut count = 0;
                for RunKey { run, namespace } in keys {
                    let deadline = self.fold.entry(run).and_then(|entry| entry.aggregate.run.deadline_at);
                    if deadline.is_some_and(|at| at <= self.now) {
                        // Refused only when the run is gone; then there is nothing to expire.
                        let _ = self.apply(&Command::Expire { namespace, run }).await?;
                        count += 1;
                    }
                }
                Ok(Swept { count, more: false, next_at: None })
            }
            SweepKind::StaleWorkers { before } => {
                let stale = self.backend.stale_workers(before, SWEEP_LEN_MAX).await?;
                let more = stale.len() == SWEEP_LEN_MAX;
                let mut count = 0;
                for id in stale {
                    self.load_worker(id).await?;
                    // A heartbeat earlier in this batch keeps it alive.
                    if self.roster.get(id).is_some_and(|member| member.worker.heartbeat_at < before) {
                        self.take_offline(id, Leaving::Lost).await?;
                        count += 1;
                    }
                }
                Ok(Swept { count, more, next_at: None })
            }
        }
    }

    /// Gives runs that became due in this batch to workers with room, before they ever wait: start and claim,
    /// or the end of one run and the claim of the next, share a commit.
    async fn give_out_fresh(&mut self) -> Result<(), StoreError> {
        for id in self.fold.touched.rows.clone() {
            let Some(entry) = self.fold.entry(id) else { continue };
            let run = &entry.aggregate.run;
            let Some(due) = run.due_at() else { continue };
            let key = QueueKey::of(run);
            let Some(state) = self.board.key_mut(&key) else { continue };
            if due > self.now {
                state.next_due = Some(state.next_due.map_or(due, |known| known.min(due)));
                continue;
            }
            // Older runs wait in the database: this one queues behind them.
            if state.backlog || !self.give(&key, id).await? {
                self.board.key_mut(&key).expect("watched above").backlog = true;
            }
        }
        Ok(())
    }

    /// Leases one run to the worker with the most room; false when there is none.
    async fn give(&mut self, key: &QueueKey, id: RunId) -> Result<bool, StoreError> {
        let (roster, served) = (&*self.roster, &self.served);
        let room = |demand: &Demand| if served.contains(&demand.id) { 0 } else { roster.room(demand) };
        let Some(demand) = self.board.roomiest(key, room) else { return Ok(false) };
        let (demand_id, once) = (demand.id, demand.once);
        let command = Command::Lease {
            namespace: key.namespace.clone(),
            run: id,
            worker: demand.worker,
            until: self.now.plus_ms(self.lease_ms(id, demand.lease_ms)),
        };
        match self.decide(&command).await? {
            Ok(_) => {
                LaneStats::add(&self.stats.leases, 1);
                if once {
                    self.served.insert(demand_id);
                }
                self.assigned.push((demand_id, id));
                self.count_leases();
            }
            Err(rejection) => {
                // The index said due and the row says no: report it and do not try it again at once.
                tracing::error!(run = %id, %rejection, "a due run could not be leased");
            }
        }
        Ok(true)
    }

    /// Claims waiting runs, key by key, for workers that have room.
    async fn claim_backlog(&mut self) -> Result<(), StoreError> {
        for key in self.board.backlogged() {
            let room = {
                let (roster, served) = (&*self.roster, &self.served);
                self.board.room(
                    &key,
                    |demand| {
                        if served.contains(&demand.id) { 0 } else { roster.room(demand) }
                    },
                )
            };
            let limit = room.min(CLAIM_LEN_MAX);
            if limit == 0 {
                continue;
            }
            let query = DueQuery { key: &key, now: self.now, limit };
            let due = self.backend.due(&query).await?;
            let found = |id: &RunId| RunKey { run: *id, namespace: key.namespace.clone() };
            self.load_runs(due.iter().map(|(_, id)| found(id)).collect()).await?;
            let short = due.len() < limit;
            // Several demands of one worker promise its free slots more than once, so some may be left over.
            let mut left_over = false;
            for (_, id) in due {
                if !self.give(&key, id).await? {
                    left_over = true;
                    break;
                }
            }
            if short && !left_over {
                let next_due = self.backend.next_due(&key, self.now).await?;
                if let Some(state) = self.board.key_mut(&key) {
                    state.backlog = false;
                    state.next_due = next_due;
                }
            }
        }
        Ok(())
    }

    /// Counts leases that began or ended since the last look.
    fn count_leases(&mut self) {
        for moved in &self.fold.touched.leases[self.lease_moves_counted..] {
            self.roster.count(moved);
        }
        self.lease_moves_counted = self.fold.touched.leases.len();
    }

    /// Counts before anything is written, because loading a worker counts its leases in the database.
    async fn count_all_leases(&mut self) -> Result<(), StoreError> {
        let moves = &self.fold.touched.leases[self.lease_moves_counted..];
        let workers: HashSet<WorkerId> = moves.iter().map(|moved| moved.worker).collect();
        for id in workers {
            self.load_worker(id).await?;
        }
        self.count_leases();
        Ok(())
    }

    /// After a failed commit the roster is empty: load those who stand by.
    async fn warm_up(&mut self) -> Result<(), StoreError> {
        if self.roster.cold {
            for id in self.board.workers() {
                self.load_worker(id).await?;
            }
            self.roster.cold = false;
        }
        Ok(())
    }

    async fn write(&mut self) -> Result<(), StoreError> {
        self.count_all_leases().await?;
        let mut set = self.fold.drain();
        set.workers = self.roster.drain();
        if set.is_empty() {
            return Ok(());
        }
        self.wrote = true;
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
            .map(|(_, waiting)| waiting)
            .collect();
        keys.into_iter().collect()
    }

    fn done(&mut self, answers: Vec<Answer>) -> Done {
        let waiting = self.waiting();
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
            rows: touched.rows,
            offline: std::mem::take(&mut self.offline),
            waiting,
        }
    }

    fn assignment(&self, id: RunId) -> Option<Assignment> {
        let entry = self.fold.entry(id)?;
        let run = entry.aggregate.run.clone();
        debug_assert!(matches!(run.state, State::Leased(_)), "an assigned run is leased");
        Some(Assignment { run, input: entry.input.clone(), fresh: entry.aggregate.steps.is_empty() })
    }
}

enum Leaving {
    Politely,
    Lost,
}

fn commands(message: &Message) -> &[Command] {
    match message {
        Message::Apply { commands, .. } => commands,
        Message::StandBy { .. }
        | Message::Withdraw { .. }
        | Message::Worker { .. }
        | Message::Sweep { .. }
        | Message::Wake { .. }
        | Message::Close { .. } => &[],
    }
}
