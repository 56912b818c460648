//! Workers as the lane knows them: their row, and how many runs they hold.

use kagzi_model::{RegistryError, RunId, Timestamp, Worker, WorkerCommand, WorkerId, WorkerStatus};

use crate::{
    Changes, Demand, LoadedWorker, RunKey,
    fold::LeaseMove,
    hash::{HashMap, HashSet},
    table::{Known, Table},
};

/// Workers that are remembered although they do not stand by.
const WORKERS_MAX: usize = 10_000;

/// One worker and the runs that it holds.
pub type CachedWorker = Known<Worker, HashSet<RunId>>;

impl CachedWorker {
    /// How many runs it holds.
    pub fn active(&self) -> u32 {
        u32::try_from(self.beside.len()).unwrap_or(u32::MAX)
    }

    /// The runs that it holds. A worker is of one namespace, and so are its runs.
    pub fn holds(&self) -> impl Iterator<Item = RunKey> {
        let namespace = &self.row.registration.namespace;
        self.beside.iter().map(|run| RunKey { id: *run, namespace: namespace.clone() })
    }
}

/// What a worker made of its runs, beyond what its row says.
#[derive(Default, Clone, Copy)]
struct Totals {
    completed: i64,
    failed: i64,
}

impl Totals {
    fn add(&mut self, more: Totals) {
        self.completed += more.completed;
        self.failed += more.failed;
    }
}

/// Workers loaded so far. Dropped whole when a commit fails.
#[derive(Default)]
pub struct WorkerCache {
    workers: Table<Worker, HashSet<RunId>>,
    /// What workers made of their runs and no row says yet. Where servers share a database it is written with
    /// the next heartbeat, not with every commit: each write leaves a dead version of the row, and while
    /// somebody keeps a transaction open nobody cleans them up. A server that dies takes the last seconds'
    /// along.
    owed: HashMap<WorkerId, Totals>,
    /// The same of this turn, and what this turn has written of it: a failed turn takes both back.
    counted: HashMap<WorkerId, Totals>,
    paid: HashMap<WorkerId, Totals>,
    /// Workers whose rows are written with this turn because of it.
    unpaid: HashSet<WorkerId>,
    /// Workers that a failed turn made forget. Those of them that stand by are loaded again.
    missing: HashSet<WorkerId>,
    /// Where several servers share a database: the workers whose row says that they stand by at this server.
    /// Others are given nothing, because their runs are counted elsewhere.
    home: Option<HashSet<WorkerId>>,
    /// It was cleared, and workers that stand by may be missing.
    pub cold: bool,
}

impl WorkerCache {
    pub fn new(shared: bool) -> Self {
        WorkerCache { home: shared.then(HashSet::default), ..WorkerCache::default() }
    }

    /// A turn begins.
    pub fn begin(&mut self) {
        self.workers.begin();
        self.paid.clear();
        for (id, totals) in self.counted.drain() {
            self.owed.entry(id).or_default().add(totals);
        }
    }

    /// The turn failed: what it made of workers is not true.
    pub fn forget_turn(&mut self) {
        self.counted.clear();
        self.unpaid.clear();
        for (id, totals) in self.paid.drain() {
            self.owed.entry(id).or_default().add(totals);
        }
        for id in self.workers.forget_turn() {
            if let Some(home) = &mut self.home {
                home.remove(&id);
            }
            self.missing.insert(id);
        }
    }

    /// Workers that stand by may have to be loaded before runs are given out.
    pub fn is_incomplete(&self) -> bool {
        self.cold || !self.missing.is_empty()
    }

    /// Workers to load before runs are given out.
    pub fn take_missing(&mut self) -> HashSet<WorkerId> {
        std::mem::take(&mut self.missing)
    }

    /// Whether the worker stands by here, as far as is known; a commit finds out when it moved on.
    pub fn is_home(&self, id: WorkerId) -> bool {
        self.home.as_ref().is_none_or(|home| home.contains(&id))
    }

    /// The worker's row says that it stands by here.
    pub fn mark_home(&mut self, id: WorkerId) {
        self.workers.touch(id);
        if let Some(home) = &mut self.home {
            home.insert(id);
        }
    }

    pub fn contains(&self, id: WorkerId) -> bool {
        self.workers.contains(&id)
    }

    pub fn get(&self, id: WorkerId) -> Option<&CachedWorker> {
        self.workers.known(&id)
    }

    /// Adds a worker that was loaded.
    pub fn know(&mut self, LoadedWorker { worker, holds }: LoadedWorker) {
        self.workers.know(worker, holds.into_iter().collect());
    }

    /// Forgets a worker whose row has no unwritten change, so that it is loaded again.
    pub fn evict(&mut self, id: WorkerId) {
        self.workers.evict(&id);
    }

    /// Decides a change of the registry; the row is written with the batch. A worker that is known already
    /// keeps its runs.
    pub fn decide(
        &mut self,
        now: Timestamp,
        id: WorkerId,
        command: WorkerCommand<'_>,
    ) -> Result<&Worker, RegistryError> {
        let worker = Worker::decide(now, self.workers.get(&id), id, command)?;
        self.workers.put(worker);
        self.pay(id);
        Ok(self.workers.get(&id).expect("it was put"))
    }

    /// How many more runs a demand may be given: the server's own limit, whatever the worker believes.
    pub fn room(&self, demand: &Demand) -> u32 {
        let free = match self.workers.known(&demand.worker) {
            Some(known) if self.is_home(demand.worker) => known.row.room(known.active()),
            Some(_) | None => 0,
        };
        if demand.once { free.min(1) } else { free }
    }

    /// Counts a lease that began or ended, and what the worker made of it.
    pub fn count(&mut self, moved: &LeaseMove) {
        let Some(holds) = self.workers.beside_mut(&moved.worker) else { return };
        if moved.begun {
            holds.insert(moved.run);
            return;
        }
        holds.remove(&moved.run);
        if moved.completed || moved.failed {
            let totals = Totals { completed: i64::from(moved.completed), failed: i64::from(moved.failed) };
            self.counted.entry(moved.worker).or_default().add(totals);
            if self.home.is_none() {
                self.unpaid.insert(moved.worker);
            }
        }
    }

    /// The rows that changed.
    pub fn drain(&mut self) -> Changes<Worker> {
        for id in std::mem::take(&mut self.unpaid) {
            self.pay(id);
        }
        self.workers.drain()
    }

    /// Adds to a worker's row what is owed to it: the row is about to be written.
    fn pay(&mut self, id: WorkerId) {
        if !self.workers.contains(&id) {
            return;
        }
        let (owed, counted) = (self.owed.remove(&id), self.counted.remove(&id));
        if let Some(owed) = owed {
            self.paid.entry(id).or_default().add(owed);
        }
        for totals in owed.into_iter().chain(counted) {
            self.workers.change(&id, |worker| worker.count(totals.completed, totals.failed));
        }
    }

    /// The store closes: rows to which something is owed are written with the last batch.
    pub fn pay_all(&mut self) {
        self.begin();
        let known = self.owed.keys().copied().filter(|id| self.workers.contains(id));
        self.unpaid = known.collect();
    }

    /// Forgets workers that stand by nowhere here when there are too many: other servers' workers are known
    /// too, once somebody asked for them. Between turns only.
    pub fn make_room(&mut self, stands: impl Fn(WorkerId) -> bool) {
        if self.workers.len() <= WORKERS_MAX {
            return;
        }
        let absent: Vec<WorkerId> = self.workers.keys().copied().filter(|id| !stands(*id)).collect();
        for id in &absent {
            self.workers.evict(id);
        }
    }

    /// Forgets everything; loaded again when needed.
    pub fn clear(&mut self) {
        self.workers.clear();
        self.missing.clear();
        self.unpaid.clear();
        // Whether it was written nobody knows: counted too little is better than counted twice.
        self.owed.clear();
        self.counted.clear();
        self.paid.clear();
        self.home.iter_mut().for_each(HashSet::clear);
        self.cold = true;
    }

    /// Forgets a worker that went offline.
    pub fn settle(&mut self, id: WorkerId) {
        if self.workers.get(&id).is_some_and(|worker| worker.status == WorkerStatus::Offline) {
            self.workers.forget(&id);
            self.owed.remove(&id);
            self.counted.remove(&id);
            if let Some(home) = &mut self.home {
                home.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use kagzi_model::{Registration, Timestamp};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn workers_that_stand_by_nowhere_here_are_not_remembered_for_ever() {
        let mut cache = WorkerCache::new(true);
        let registration = Registration {
            namespace: "shop".into(),
            task_queue: "orders".into(),
            workflow_types: Vec::new(),
            hostname: "host".into(),
            pid: 1,
            version: "1".into(),
            max_concurrent: 1,
            labels: Default::default(),
        };
        let ids: Vec<WorkerId> = (0..=WORKERS_MAX as u128).map(|id| WorkerId(Uuid::from_u128(id))).collect();
        for id in &ids {
            let register = WorkerCommand::Register(&registration);
            let worker = Worker::decide(Timestamp(0), None, *id, register).unwrap();
            cache.know(LoadedWorker { worker, holds: Vec::new() });
        }
        let standing = ids[7];

        cache.make_room(|id| id == standing);

        assert!(cache.contains(standing) && !cache.contains(ids[8]));
        assert_eq!(cache.workers.len(), 1);
    }
}
