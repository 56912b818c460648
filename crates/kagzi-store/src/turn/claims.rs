//! The claims of a turn: due runs go to workers with room, in the same commit.

use std::time::Instant;

use kagzi_model::{RunId, RunKey, State, Timestamp, WorkerId, act};

use super::{Turn, roomiest::Roomiest};
use crate::{
    AsideRow, Backend, Demand, DueKey, DueQuery, DueRun, Histogram, LaneStats, QueueKey, StoreError,
    WorkersQuery, frontier::WHOLE, hash::HashSet,
};

/// When to look again for a due run that another server holds. Its row lock lasts one commit, a few
/// milliseconds. If that commit fails, nothing notifies us, so we look again.
const HELD_ELSEWHERE_MS: i64 = 50;
/// Keys that one turn claims from. With more, the oldest are served first and the others in the turns that
/// follow.
const CLAIM_KEYS_MAX: usize = 32;
/// So many workers of a key are looked at for each run: less work than keeping them in order.
const FEW_WATCHERS: usize = 16;

impl<'a, B: Backend> Turn<'a, B> {
    /// Gives runs that became due in this batch to workers with room, before they ever wait: start and claim,
    /// or the end of one run and the claim of the next, share a commit.
    pub(super) async fn give_out_fresh(&mut self) -> Result<(), StoreError> {
        let mut touched: Vec<RunId> = self.fold.touched.rows.to_vec();
        if touched.len() > 1 {
            // In the order in which the database would name them.
            let due = |id: RunId| self.fold.entry(id).and_then(|entry| entry.aggregate.run.due_at());
            touched.sort_by_cached_key(|id| (due(*id), *id));
        }
        for id in touched {
            let Some(entry) = self.fold.entry(id) else { continue };
            let run = &entry.aggregate.run;
            let Some(due) = run.due_at() else { continue };
            let key = QueueKey::of(run);
            if !self.board.watches(&key) {
                continue;
            }
            if !self.controls_readable(&key.namespace).await? {
                continue;
            }
            let gated = !self.controls.before(&key).is_empty();
            if due > self.now {
                self.board.expect(&key, due);
                continue;
            }
            // Older runs wait in the database, of this key or of another one for the same workers: this one
            // queues behind them. Behind a gate, too, it is claimed with the backlog, once what is leased
            // there is counted: still in this commit.
            let behind = gated || self.board.has_backlog(&key) || self.board.contended(&key);
            if behind || !self.give(&key, id).await? {
                self.board.add_backlog(&key);
                if let Some(frontier) = self.board.frontier(&key) {
                    frontier.no_later_than(due);
                }
            }
        }
        Ok(())
    }

    /// Leases one run to the worker with the most room; false when there is none.
    async fn give(&mut self, key: &QueueKey, id: RunId) -> Result<bool, StoreError> {
        let Some(demand) = self.roomiest(key) else { return Ok(false) };
        let (demand_id, once, worker) = (demand.id, demand.once, demand.worker);
        let standard_ms = demand.lease_ms;
        let command = RunKey::new(key.namespace.clone(), id)
            .duty(act::Claim { worker, until: self.now.plus_ms(self.lease_ms(id, standard_ms)) });
        let waited = self.waited(id);
        match self.decide(&command).await? {
            Ok(_) => {
                LaneStats::add(&self.stats.leases, 1);
                if let Some((histogram, micros)) = waited {
                    histogram.observe(micros);
                }
                if once {
                    self.served.insert(demand_id);
                }
                self.assigned.push((demand_id, id));
                if self.shared {
                    self.looked.insert(key.clone());
                    self.leased_to.insert((key.namespace.clone(), worker));
                }
                self.count_leases();
            }
            Err(rejection) => {
                // The index says due and the row says no. It would be found first in every turn, and so many
                // of them would stand in the way of their whole key: it is left alone, and named to whoever
                // looks.
                tracing::error!(namespace = %key.namespace, run = %id, %rejection, "a due run could not be \
                    leased");
                let row = AsideRow::Run(RunKey::new(key.namespace.clone(), id));
                let why = format!("its row is due and cannot be leased: {rejection}");
                self.stats.aside.put(row, &why, self.now);
            }
        }
        Ok(true)
    }

    /// The worker of a key with the most room, so that work spreads. With a thousand of them, looking at all
    /// for every run would be a tenth of a millisecond of the one thread that writes.
    fn roomiest(&mut self, key: &QueueKey) -> Option<&Demand> {
        let (worker_cache, served, board) = (&*self.worker_cache, &self.served, &*self.board);
        let room = |demand: &Demand| if served.contains(&demand.id) { 0 } else { worker_cache.room(demand) };
        if board.watchers(key) <= FEW_WATCHERS {
            return board.roomiest(key, room);
        }
        if !self.roomiest.contains_key(key) {
            self.roomiest.insert(key.clone(), Roomiest::of(board.demands(key), room));
        }
        let known = self.roomiest.get_mut(key).expect("inserted above");
        let picked = known.pick(|id| board.demand(id).map_or(0, room))?;
        board.demand(picked)
    }

    /// How long the run has waited since it was due, and where that is counted: a late timer is not a full
    /// queue.
    fn waited(&self, id: RunId) -> Option<(&'a Histogram, u64)> {
        let run = &self.fold.entry(id)?.aggregate.run;
        let micros = u64::try_from(self.now.0.saturating_sub(run.due_at()?.0)).unwrap_or(0);
        let stats: &'a LaneStats = self.stats;
        match &run.state {
            State::Ready { .. } => Some((&stats.schedule_to_start, micros)),
            State::Waiting(_) => Some((&stats.timer_lag, micros)),
            State::Leased(_)
            | State::Paused { .. }
            | State::Completed
            | State::Failed { .. }
            | State::Cancelled { .. }
            | State::TimedOut { .. } => None,
        }
    }

    /// Claims waiting runs for workers that have room: of all keys together the longest due first, so that no
    /// type and no queue waits for more than the runs that were due before its own.
    pub(super) async fn claim_backlog(&mut self) -> Result<(), StoreError> {
        let wanted = self.wanted().await?;
        if wanted.is_empty() {
            return Ok(());
        }
        let aside = self.stats.aside.runs();
        let query = DueQuery { keys: &wanted, now: self.now, aside: &aside };
        let began = Instant::now();
        let due = self.backend.due(&query).await?;
        for DueKey { key, from, .. } in &wanted {
            if let Some(frontier) = self.board.frontier(key) {
                frontier.searched(*from, began, began.elapsed());
            }
        }
        let mut found = vec![0; wanted.len()];
        due.iter().for_each(|run| found[run.key] += 1);
        let mut left_over = vec![false; wanted.len()];
        let (first, rest) = due.split_at(due.len().min(self.claims_max()));
        rest.iter().for_each(|run| left_over[run.key] = true);
        self.suspect_run(first.first().map(|run| (run.run, &wanted[run.key].key)));
        let key_of = |run: &DueRun| RunKey { id: run.run, namespace: wanted[run.key].key.namespace.clone() };
        self.load_runs(first.iter().map(key_of).collect()).await?;
        for run in first {
            let key = &wanted[run.key].key;
            // Several demands of one worker promise its free slots more than once, and keys share gates; what
            // cannot be read was set aside. Whatever is left over is looked for again.
            let given =
                self.controls.room(key) > 0 && !self.fold.lacks(run.run) && self.give(key, run.run).await?;
            left_over[run.key] |= !given;
        }
        let done = |place: &usize| found[*place] < wanted[*place].len && !left_over[*place];
        let done: Vec<usize> = (0..wanted.len()).filter(done).collect();
        if !done.is_empty() {
            let keys: Vec<DueKey> =
                done.iter().map(|place| DueKey { len: found[*place], ..wanted[*place].clone() }).collect();
            let times = self.backend.next_due(&keys, &aside).await?;
            for (DueKey { key, .. }, next_due) in keys.iter().zip(times) {
                let again = self.now.plus_ms(HELD_ELSEWHERE_MS);
                let held = next_due.is_some_and(|at| at <= self.now);
                self.board.end_backlog(key, if held { Some(again) } else { next_due });
                if let Some(frontier) = self.board.frontier(key).filter(|_| !held) {
                    frontier.advance(self.now);
                }
            }
        }
        for (place, DueKey { key, .. }) in wanted.iter().enumerate() {
            // With more behind them, the place is the last of those that were found.
            let last = due.iter().rfind(|run| run.key == place).filter(|_| !left_over[place]);
            if let (Some(last), Some(frontier)) = (last, self.board.frontier(key))
                && !done.contains(&place)
            {
                frontier.advance(last.at);
            }
            if !done.contains(&place) && self.controls.room(key) == 0 {
                self.board.block(key);
            }
        }
        Ok(())
    }

    /// The keys to claim from in this turn, each with how many runs could be given out. When there are many,
    /// those whose oldest run has waited longest.
    async fn wanted(&mut self) -> Result<Vec<DueKey>, StoreError> {
        let mut keys = Vec::new();
        for key in self.board.backlogged() {
            if self.room(&key) > 0 && self.controls_readable(&key.namespace).await? {
                keys.push(key);
            }
        }
        if keys.len() > CLAIM_KEYS_MAX {
            keys = self.longest_waiting(keys).await?;
        }
        self.lock_and_count_gates(&keys).await?;
        if self.shared {
            self.looked.extend(keys.iter().cloned());
        }
        let (mut wanted, claims_max) = (Vec::with_capacity(keys.len()), self.claims_max());
        for key in keys {
            let len = self.room(&key).min(claims_max).min(self.controls.room(&key));
            match len {
                0 => self.board.block(&key),
                len => {
                    let from = self.search_from(&key);
                    wanted.push(DueKey { key, len, from });
                }
            }
        }
        Ok(wanted)
    }

    /// Runs that this turn takes from the backlog. As many as leases have ended in it, if these are not too
    /// many: with fewer, slots that workers have given back stand empty while runs wait for them.
    fn claims_max(&self) -> usize {
        if self.careful {
            return self.claim_len_max;
        }
        let ended = self.fold.touched.leases.iter().filter(|moved| !moved.begun).count();
        ended.clamp(self.claim_len_max, 2 * self.claim_len_max)
    }

    /// Where a search for due runs of the key begins. Alone on a database every entry of an index is alive.
    fn search_from(&mut self, key: &QueueKey) -> Timestamp {
        let frontier = self.board.frontier(key).filter(|_| self.shared);
        frontier.map_or(WHOLE, |frontier| frontier.begins(Instant::now()))
    }

    async fn longest_waiting(&mut self, keys: Vec<QueueKey>) -> Result<Vec<QueueKey>, StoreError> {
        let wanted: Vec<DueKey> =
            keys.into_iter().map(|key| DueKey { from: self.search_from(&key), key, len: 0 }).collect();
        let heads = self.backend.next_due(&wanted, &self.stats.aside.runs()).await?;
        let mut waiting = Vec::new();
        for (DueKey { key, .. }, head) in wanted.into_iter().zip(heads) {
            match head {
                Some(at) if at <= self.now => waiting.push((at, key)),
                later => self.board.end_backlog(&key, later),
            }
        }
        waiting.sort_unstable();
        Ok(waiting.into_iter().take(CLAIM_KEYS_MAX).map(|(_, key)| key).collect())
    }

    /// Notes what a careful turn takes up.
    pub(super) fn suspect_run(&mut self, first: Option<(RunId, &QueueKey)>) {
        if self.careful {
            self.suspect =
                first.map(|(run, key)| AsideRow::Run(RunKey { id: run, namespace: key.namespace.clone() }));
        }
    }

    /// How many runs of the key workers could take now.
    fn room(&self, key: &QueueKey) -> usize {
        let (worker_cache, served) = (&*self.worker_cache, &self.served);
        self.board.room(key, |demand| if served.contains(&demand.id) { 0 } else { worker_cache.room(demand) })
    }

    /// Counts leases that began or ended since the last look.
    fn count_leases(&mut self) {
        for moved in &self.fold.touched.leases[self.lease_moves_counted..] {
            self.worker_cache.count(moved);
            self.controls.count(moved);
        }
        self.lease_moves_counted = self.fold.touched.leases.len();
    }

    /// Counts before anything is written, because loading a worker counts its leases in the database.
    pub(super) async fn count_all_leases(&mut self) -> Result<(), StoreError> {
        let moves = &self.fold.touched.leases[self.lease_moves_counted..];
        let workers: HashSet<WorkerId> = moves.iter().map(|moved| moved.worker).collect();
        self.load_all_workers(workers.into_iter()).await?;
        self.count_leases();
        Ok(())
    }

    /// Loads workers in one go. One that cannot be read is left alone and gets nothing.
    pub(super) async fn load_all_workers(
        &mut self,
        ids: impl Iterator<Item = WorkerId>,
    ) -> Result<(), StoreError> {
        let lacking: Vec<WorkerId> = ids.filter(|id| !self.worker_cache.contains(*id)).collect();
        if lacking.is_empty() {
            return Ok(());
        }
        let query = WorkersQuery { whole: &lacking, ..WorkersQuery::default() };
        let loaded = Box::pin(self.backend.load_workers(&query)).await?;
        self.know_workers(loaded);
        Ok(())
    }

    /// After a failed commit the roster is empty: load those who stand by.
    pub(super) async fn warm_up(&mut self) -> Result<(), StoreError> {
        let missing = self.worker_cache.take_missing();
        let workers: Vec<WorkerId> = match self.worker_cache.cold {
            true => self.board.workers().into_iter().collect(),
            false => missing.into_iter().filter(|id| self.board.stands(*id)).collect(),
        };
        if self.shared && !workers.is_empty() {
            for id in self.backend.standing(&workers).await? {
                self.worker_cache.mark_home(id);
            }
        }
        if self.shared {
            // One whose stream is elsewhere by now gets nothing here. Polls have no home: they take turns.
            let polls = |id: &WorkerId| !self.worker_cache.is_home(*id) && self.board.only_polls(*id);
            let polls = workers.iter().copied().filter(polls).collect();
            Box::pin(self.take_in_all(polls)).await?;
        }
        self.load_all_workers(workers.into_iter()).await?;
        self.worker_cache.cold = false;
        Ok(())
    }
}
