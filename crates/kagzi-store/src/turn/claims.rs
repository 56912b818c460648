//! The claims of a turn: due runs go to workers with room, in the same commit.

use kagzi_model::{Command, RunId, State, WorkerId};

use super::Turn;
use crate::{Backend, Demand, DueQuery, Histogram, LaneStats, QueueKey, RunKey, StoreError, hash::HashSet};

/// When to look again for a due run that another server holds. It holds it for a commit, a few milliseconds; that the
/// commit failed, nobody says.
const HELD_ELSEWHERE_MS: i64 = 50;

impl<'a, B: Backend> Turn<'a, B> {
    /// Gives runs that became due in this batch to workers with room, before they ever wait: start and claim,
    /// or the end of one run and the claim of the next, share a commit.
    pub(super) async fn give_out_fresh(&mut self) -> Result<(), StoreError> {
        for id in self.fold.touched.rows.clone() {
            let Some(entry) = self.fold.entry(id) else { continue };
            let run = &entry.aggregate.run;
            let Some(due) = run.due_at() else { continue };
            let key = QueueKey::of(run);
            if !self.board.watches(&key) {
                continue;
            }
            self.rules_in_use(&key.namespace).await?;
            let gated = !self.rules.before(&key).is_empty();
            let Some(state) = self.board.key_mut(&key) else { continue };
            if due > self.now {
                state.next_due = Some(state.next_due.map_or(due, |known| known.min(due)));
                continue;
            }
            // Older runs wait in the database: this one queues behind them. Behind a gate, too, it is claimed with
            // the backlog, once what is leased there is counted: still in this commit.
            if gated || state.backlog || !self.give(&key, id).await? {
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
        let (demand_id, once, worker) = (demand.id, demand.once, demand.worker);
        let command = Command::Lease {
            namespace: key.namespace.clone(),
            run: id,
            worker,
            until: self.now.plus_ms(self.lease_ms(id, demand.lease_ms)),
        };
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
                    self.leased_to.insert((key.namespace.clone(), worker));
                }
                self.count_leases();
            }
            Err(rejection) => {
                // The index said due and the row says no: report it and do not try it again at once.
                tracing::error!(namespace = %key.namespace, run = %id, %rejection, "a due run could not be leased");
            }
        }
        Ok(true)
    }

    /// How long the run has waited since it was due, and where that is counted: a late timer is not a full queue.
    fn waited(&self, id: RunId) -> Option<(&'a Histogram, u64)> {
        let run = &self.fold.entry(id)?.aggregate.run;
        let micros = u64::try_from(self.now.0.saturating_sub(run.due_at()?.0)).unwrap_or(0);
        let stats: &'a LaneStats = self.stats;
        match &run.state {
            State::Ready { .. } => Some((&stats.schedule_to_start, micros)),
            State::Timer { .. } | State::Retry { .. } => Some((&stats.timer_lag, micros)),
            State::Leased(_)
            | State::Paused { .. }
            | State::Completed
            | State::Failed { .. }
            | State::Cancelled { .. }
            | State::TimedOut { .. } => None,
        }
    }

    /// Claims waiting runs, key by key, for workers that have room.
    pub(super) async fn claim_backlog(&mut self) -> Result<(), StoreError> {
        let mut keys = self.board.backlogged();
        keys.retain(|key| self.room(key) > 0);
        self.approach_gates(&keys).await?;
        for key in keys {
            // An earlier key may have taken the last slot.
            let room = self.room(&key);
            if room == 0 {
                continue;
            }
            let limit = room.min(self.claim_len_max).min(self.rules.room(&key));
            if limit == 0 {
                self.board.hold(&key);
                continue;
            }
            let query = DueQuery { key: &key, now: self.now, limit };
            let due = self.backend.due(&query).await?;
            let key_of = |id: &RunId| RunKey { run: *id, namespace: key.namespace.clone() };
            self.load_runs(due.iter().map(|(_, id)| key_of(id)).collect()).await?;
            let found = due.len();
            // Several demands of one worker promise its free slots more than once, so some may be left over.
            let mut left_over = false;
            for (_, id) in due {
                if !self.give(&key, id).await? {
                    left_over = true;
                    break;
                }
            }
            if found < limit && !left_over {
                let next_due = self.backend.next_due(&key, found).await?;
                let again = self.now.plus_ms(HELD_ELSEWHERE_MS);
                let next_due = next_due.map(|at| if at > self.now { at } else { again });
                if let Some(state) = self.board.key_mut(&key) {
                    state.backlog = false;
                    state.next_due = next_due;
                }
            } else if self.rules.room(&key) == 0 {
                self.board.hold(&key);
            }
        }
        Ok(())
    }

    /// How many runs of the key workers could take now.
    fn room(&self, key: &QueueKey) -> usize {
        let (roster, served) = (&*self.roster, &self.served);
        self.board.room(key, |demand| if served.contains(&demand.id) { 0 } else { roster.room(demand) })
    }

    /// Counts leases that began or ended since the last look.
    fn count_leases(&mut self) {
        for moved in &self.fold.touched.leases[self.lease_moves_counted..] {
            self.roster.count(moved);
            self.rules.count(moved);
        }
        self.lease_moves_counted = self.fold.touched.leases.len();
    }

    /// Counts before anything is written, because loading a worker counts its leases in the database.
    pub(super) async fn count_all_leases(&mut self) -> Result<(), StoreError> {
        let moves = &self.fold.touched.leases[self.lease_moves_counted..];
        let workers: HashSet<WorkerId> = moves.iter().map(|moved| moved.worker).collect();
        for id in workers {
            self.load_worker(id).await?;
        }
        self.count_leases();
        Ok(())
    }

    /// After a failed commit the roster is empty: load those who stand by.
    pub(super) async fn warm_up(&mut self) -> Result<(), StoreError> {
        if !self.roster.cold {
            return Ok(());
        }
        let workers: Vec<WorkerId> = self.board.workers().into_iter().collect();
        if self.shared && !workers.is_empty() {
            for id in self.backend.standing(&workers).await? {
                self.roster.stood_by(id);
            }
        }
        for id in workers {
            // One whose stream is elsewhere by now gets nothing here. Polls have no home: they take turns.
            if self.shared && !self.roster.stands_here(id) && self.board.only_polls(id) {
                self.take_in(id).await?;
            }
            self.load_worker(id).await?;
        }
        self.roster.cold = false;
        Ok(())
    }
}
