//! Workers as the lane knows them: their row, and how many runs they hold.

use kagzi_model::{RunId, Worker, WorkerId, WorkerStatus};

use crate::{
    Demand, LoadedWorker, RegistryError, RunKey,
    fold::LeaseMove,
    hash::{HashMap, HashSet},
};

/// One worker and the runs that it holds.
pub struct CachedWorker {
    pub worker: Worker,
    holds: HashSet<RunId>,
}

impl CachedWorker {
    /// How many runs it holds.
    pub fn active(&self) -> u32 {
        u32::try_from(self.holds.len()).unwrap_or(u32::MAX)
    }

    /// The runs that it holds. A worker is of one namespace, and so are its runs.
    pub fn holds(&self) -> impl Iterator<Item = RunKey> {
        let namespace = &self.worker.registration.namespace;
        self.holds.iter().map(|run| RunKey { id: *run, namespace: namespace.clone() })
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
    members: HashMap<WorkerId, CachedWorker>,
    dirty: HashSet<WorkerId>,
    /// What workers made of their runs and no row says yet. Where servers share a database it is written with
    /// the next heartbeat, not with every commit: each write leaves a dead version of the row, and while
    /// somebody keeps a transaction open nobody cleans them up. A server that dies takes the last seconds'
    /// along.
    owed: HashMap<WorkerId, Totals>,
    /// The same of this turn, and what this turn has written of it: a failed turn takes both back.
    counted: HashMap<WorkerId, Totals>,
    paid: HashMap<WorkerId, Totals>,
    /// Workers that were loaded, counted or changed since the turn began.
    touched: HashSet<WorkerId>,
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
        self.touched.clear();
        self.paid.clear();
        for (id, totals) in self.counted.drain() {
            self.owed.entry(id).or_default().add(totals);
        }
    }

    /// The turn failed: what it made of workers is not true.
    pub fn forget_turn(&mut self) {
        self.dirty.clear();
        self.counted.clear();
        for (id, totals) in self.paid.drain() {
            self.owed.entry(id).or_default().add(totals);
        }
        for id in std::mem::take(&mut self.touched) {
            self.members.remove(&id);
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
        self.touched.insert(id);
        if let Some(home) = &mut self.home {
            home.insert(id);
        }
    }

    pub fn contains(&self, id: WorkerId) -> bool {
        self.members.contains_key(&id)
    }

    pub fn get(&self, id: WorkerId) -> Option<&CachedWorker> {
        self.members.get(&id)
    }

    /// Adds a worker that was loaded.
    pub fn know(&mut self, loaded: LoadedWorker) {
        let LoadedWorker { worker, holds } = loaded;
        self.touched.insert(worker.id);
        self.members.insert(worker.id, CachedWorker { worker, holds: holds.into_iter().collect() });
    }

    /// Registers a worker; it is written with the batch. One that is known already keeps its runs.
    pub fn register(&mut self, worker: Worker) {
        let id = worker.id;
        let holds = self.members.remove(&id).map(|known| known.holds).unwrap_or_default();
        self.touched.insert(id);
        self.dirty.insert(id);
        self.members.insert(id, CachedWorker { worker, holds });
    }

    /// Forgets a worker whose row has no unwritten change, so that it is loaded again.
    pub fn evict(&mut self, id: WorkerId) {
        if !self.dirty.contains(&id) {
            self.members.remove(&id);
        }
    }

    /// Changes a worker's row; it is written with the batch.
    pub fn change(&mut self, id: WorkerId, change: impl FnOnce(&mut Worker)) {
        self.pay(id);
        if let Some(member) = self.members.get_mut(&id) {
            change(&mut member.worker);
            self.touched.insert(id);
            self.dirty.insert(id);
        }
    }

    /// The worker, if it may take new work.
    pub fn online(&self, id: WorkerId) -> Result<&Worker, RegistryError> {
        let member = self.members.get(&id).ok_or(RegistryError::Unknown(id))?;
        match member.worker.status {
            WorkerStatus::Online => Ok(&member.worker),
            WorkerStatus::Draining => Err(RegistryError::Draining(id)),
            WorkerStatus::Offline => Err(RegistryError::Offline(id)),
        }
    }

    /// How many more runs a demand may be given: the server's own limit, whatever the worker believes.
    pub fn room(&self, demand: &Demand) -> u32 {
        let free = self.members.get(&demand.worker).map_or(0, |member| {
            if member.worker.status == WorkerStatus::Online && self.is_home(demand.worker) {
                member.worker.registration.max_concurrent.saturating_sub(member.active())
            } else {
                0
            }
        });
        if demand.once { free.min(1) } else { free }
    }

    /// Counts a lease that began or ended, and what the worker made of it.
    pub fn count(&mut self, moved: &LeaseMove) {
        let Some(member) = self.members.get_mut(&moved.worker) else { return };
        self.touched.insert(moved.worker);
        if moved.begun {
            member.holds.insert(moved.run);
            return;
        }
        member.holds.remove(&moved.run);
        if moved.completed || moved.failed {
            let totals = Totals { completed: i64::from(moved.completed), failed: i64::from(moved.failed) };
            self.counted.entry(moved.worker).or_default().add(totals);
            if self.home.is_none() {
                self.dirty.insert(moved.worker);
            }
        }
    }

    /// The rows that changed.
    pub fn drain(&mut self) -> Vec<Worker> {
        let mut rows = Vec::with_capacity(self.dirty.len());
        for id in std::mem::take(&mut self.dirty) {
            self.pay(id);
            rows.extend(self.members.get(&id).map(|member| member.worker.clone()));
        }
        rows
    }

    /// Adds to a worker's row, which is about to be written, what is owed to it.
    pub fn pay(&mut self, id: WorkerId) {
        let Some(member) = self.members.get_mut(&id) else { return };
        let (owed, counted) = (self.owed.remove(&id), self.counted.remove(&id));
        if let Some(owed) = owed {
            self.paid.entry(id).or_default().add(owed);
        }
        for totals in owed.into_iter().chain(counted) {
            member.worker.completed_total += totals.completed;
            member.worker.failed_total += totals.failed;
        }
    }

    /// The store closes: rows to which something is owed are written with the last batch.
    pub fn pay_all(&mut self) {
        self.begin();
        let members = &self.members;
        self.dirty.extend(self.owed.keys().copied().filter(|id| members.contains_key(id)));
    }

    /// Forgets everything; loaded again when needed.
    pub fn clear(&mut self) {
        self.members.clear();
        self.missing.clear();
        self.dirty.clear();
        // Whether it was written nobody knows: counted too little is better than counted twice.
        self.owed.clear();
        self.counted.clear();
        self.paid.clear();
        self.home.iter_mut().for_each(HashSet::clear);
        self.cold = true;
    }

    /// Forgets a worker that went offline.
    pub fn settle(&mut self, id: WorkerId) {
        if self.members.get(&id).is_some_and(|member| member.worker.status == WorkerStatus::Offline) {
            self.members.remove(&id);
            self.owed.remove(&id);
            self.counted.remove(&id);
            if let Some(home) = &mut self.home {
                home.remove(&id);
            }
        }
    }
}
