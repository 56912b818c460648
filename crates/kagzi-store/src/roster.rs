//! Workers as the lane knows them: their row, and how many runs they hold.

use kagzi_model::{Worker, WorkerId, WorkerStatus};

use crate::{
    Demand, RegistryError,
    fold::LeaseMove,
    hash::{HashMap, HashSet},
};

/// One worker with its leases counted.
pub struct Member {
    pub worker: Worker,
    pub active: u32,
}

/// Workers loaded so far. Dropped whole when a commit fails.
#[derive(Default)]
pub struct Roster {
    members: HashMap<WorkerId, Member>,
    dirty: HashSet<WorkerId>,
    /// Workers that were loaded, counted or changed since the turn began.
    touched: HashSet<WorkerId>,
    /// Workers that a failed turn made forget. Those of them that stand by are loaded again.
    missing: HashSet<WorkerId>,
    /// Where several servers share a database: the workers whose row says that they stand by here. Others are given
    /// nothing, because their runs are counted elsewhere.
    here: Option<HashSet<WorkerId>>,
    /// It was cleared, and workers that stand by may be missing.
    pub cold: bool,
}

impl Roster {
    pub fn new(shared: bool) -> Self {
        Roster { here: shared.then(HashSet::default), ..Roster::default() }
    }

    /// A turn begins.
    pub fn begin(&mut self) {
        self.touched.clear();
    }

    /// The turn failed: what it made of workers is not true.
    pub fn forget_turn(&mut self) {
        self.dirty.clear();
        for id in std::mem::take(&mut self.touched) {
            self.members.remove(&id);
            if let Some(here) = &mut self.here {
                here.remove(&id);
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
    pub fn stands_here(&self, id: WorkerId) -> bool {
        self.here.as_ref().is_none_or(|here| here.contains(&id))
    }

    /// The worker's row says that it stands by here.
    pub fn stood_by(&mut self, id: WorkerId) {
        self.touched.insert(id);
        if let Some(here) = &mut self.here {
            here.insert(id);
        }
    }

    pub fn contains(&self, id: WorkerId) -> bool {
        self.members.contains_key(&id)
    }

    pub fn get(&self, id: WorkerId) -> Option<&Member> {
        self.members.get(&id)
    }

    pub fn insert(&mut self, worker: Worker, active: u32) {
        self.touched.insert(worker.id);
        self.members.insert(worker.id, Member { worker, active });
    }

    /// Forgets a worker whose row has no unwritten change, so that it is loaded again.
    pub fn doubt(&mut self, id: WorkerId) {
        if !self.dirty.contains(&id) {
            self.members.remove(&id);
        }
    }

    /// Changes a worker's row; it is written with the batch.
    pub fn change(&mut self, id: WorkerId, change: impl FnOnce(&mut Worker)) {
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
            if member.worker.status == WorkerStatus::Online && self.stands_here(demand.worker) {
                member.worker.registration.max_concurrent.saturating_sub(member.active)
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
            member.active += 1;
            return;
        }
        member.active = member.active.saturating_sub(1);
        if moved.completed || moved.failed {
            member.worker.completed_total += i64::from(moved.completed);
            member.worker.failed_total += i64::from(moved.failed);
            self.dirty.insert(moved.worker);
        }
    }

    /// The rows that changed.
    pub fn drain(&mut self) -> Vec<Worker> {
        let members = &self.members;
        self.dirty.drain().filter_map(|id| members.get(&id)).map(|member| member.worker.clone()).collect()
    }

    /// Forgets everything; loaded again when needed.
    pub fn clear(&mut self) {
        self.members.clear();
        self.missing.clear();
        self.dirty.clear();
        self.here.iter_mut().for_each(HashSet::clear);
        self.cold = true;
    }

    /// Forgets a worker that went offline.
    pub fn settle(&mut self, id: WorkerId) {
        if self.members.get(&id).is_some_and(|member| member.worker.status == WorkerStatus::Offline) {
            self.members.remove(&id);
            if let Some(here) = &mut self.here {
                here.remove(&id);
            }
        }
    }
}
