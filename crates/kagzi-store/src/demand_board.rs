//! The board: which workers stand by for which runs, and what is known of the queues they watch.

use std::collections::{BTreeMap, BTreeSet};

use kagzi_model::{GateKey, Name, Timestamp, WorkerId};

use crate::{
    Demand, QueueKey,
    frontier::Frontier,
    hash::{HashMap, HashSet},
};

/// A demand and the keys it watches.
pub struct StandBy {
    pub demand: Demand,
    keys: Vec<QueueKey>,
}

/// What is known of one watched key.
#[derive(Default)]
pub struct KeyState {
    demands: Vec<u64>,
    /// Due runs may wait in the database. False is a promise: there are none, and a new one may be given to a
    /// worker without looking.
    backlog: bool,
    /// A gate lets nothing of the key through: looking is of no use until it opens, a lease behind it ends,
    /// or somebody says so.
    held: bool,
    /// When the next sleeping or retrying run is due; unknown only while `backlog` is set.
    next_due: Option<Timestamp>,
    /// Where a search for due runs begins, on a shared database.
    frontier: Frontier,
}

/// All demands of this process.
#[derive(Default)]
pub struct DemandBoard {
    demands: BTreeMap<u64, StandBy>,
    by_worker: HashMap<WorkerId, Vec<u64>>,
    keys: HashMap<QueueKey, KeyState>,
    /// The keys that must be looked at: with a backlog, and not held. Kept beside the keys, so that a server
    /// with thousands of them does not walk through all of them in every turn.
    waiting: HashSet<QueueKey>,
    /// The keys by their next due run.
    timers: BTreeSet<(Timestamp, QueueKey)>,
    /// Where a search for leases and deadlines that passed begins, on a shared database.
    pub sweeps: Frontier,
}

impl DemandBoard {
    /// Adds a demand. Its keys must be looked at, so they count as backlog.
    pub fn add(&mut self, namespace: &Name, task_queue: &Name, demand: Demand) {
        // A batch that is repeated after a conflict stands by again.
        self.remove(demand.id);
        let keys: Vec<_> = demand
            .types
            .iter()
            .map(|name| QueueKey {
                namespace: namespace.clone(),
                task_queue: task_queue.clone(),
                workflow_type: name.clone(),
            })
            .collect();
        for key in &keys {
            if !self.keys.contains_key(key) {
                self.keys.insert(key.clone(), KeyState::default());
                self.change(key, |state| state.backlog = true);
            }
            self.keys.get_mut(key).expect("inserted above").demands.push(demand.id);
        }
        self.by_worker.entry(demand.worker).or_default().push(demand.id);
        self.demands.insert(demand.id, StandBy { demand, keys });
    }

    /// Removes a demand and the keys that nobody watches any more.
    pub fn remove(&mut self, id: u64) {
        let Some(standing) = self.demands.remove(&id) else { return };
        let worker = standing.demand.worker;
        if let Some(of_worker) = self.by_worker.get_mut(&worker) {
            of_worker.retain(|other| *other != id);
            if of_worker.is_empty() {
                self.by_worker.remove(&worker);
            }
        }
        for key in standing.keys {
            let Some(state) = self.keys.get_mut(&key) else { continue };
            state.demands.retain(|other| *other != id);
            if state.demands.is_empty() {
                self.change(&key, |state| *state = KeyState::default());
                self.keys.remove(&key);
            }
        }
    }

    /// Removes all demands of a worker that takes no more work.
    pub fn remove_worker(&mut self, worker: WorkerId) {
        let gone = self.by_worker.get(&worker).cloned().unwrap_or_default();
        gone.into_iter().for_each(|id| self.remove(id));
    }

    /// Changes what is known of a key, and the sets beside it.
    fn change(&mut self, key: &QueueKey, change: impl FnOnce(&mut KeyState)) {
        let Some(state) = self.keys.get_mut(key) else { return };
        let before = (state.backlog && !state.held, state.next_due);
        change(state);
        let after = (state.backlog && !state.held, state.next_due);
        if before.0 != after.0 {
            match after.0 {
                true => drop(self.waiting.insert(key.clone())),
                false => drop(self.waiting.remove(key)),
            }
        }
        if before.1 != after.1 {
            if let Some(at) = before.1 {
                self.timers.remove(&(at, key.clone()));
            }
            if let Some(at) = after.1 {
                self.timers.insert((at, key.clone()));
            }
        }
    }

    /// Who stands by.
    pub fn workers(&self) -> HashSet<WorkerId> {
        self.by_worker.keys().copied().collect()
    }

    /// The worker stands by with polls alone, not with a stream.
    pub fn only_polls(&self, worker: WorkerId) -> bool {
        self.demands_of(worker).all(|demand| demand.once)
    }

    pub fn stands(&self, worker: WorkerId) -> bool {
        self.demands_of(worker).next().is_some()
    }

    fn demands_of(&self, worker: WorkerId) -> impl Iterator<Item = &Demand> {
        let ids = self.by_worker.get(&worker).map_or(&[][..], Vec::as_slice);
        ids.iter().filter_map(|id| self.demand(*id))
    }

    pub fn demand(&self, id: u64) -> Option<&Demand> {
        self.demands.get(&id).map(|standing| &standing.demand)
    }

    pub fn watches(&self, key: &QueueKey) -> bool {
        self.keys.contains_key(key)
    }

    /// Where a search for due runs of the key begins.
    pub fn frontier(&mut self, key: &QueueKey) -> Option<&mut Frontier> {
        self.keys.get_mut(key).map(|state| &mut state.frontier)
    }

    /// Due runs of the key may wait in the database.
    pub fn has_backlog(&self, key: &QueueKey) -> bool {
        self.keys.get(key).is_some_and(|state| state.backlog)
    }

    /// Due runs of the key wait, or may.
    pub fn add_backlog(&mut self, key: &QueueKey) {
        self.change(key, |state| state.backlog = true);
    }

    /// No due run of the key waits; the next one is due then.
    pub fn end_backlog(&mut self, key: &QueueKey, next_due: Option<Timestamp>) {
        self.change(key, |state| (state.backlog, state.next_due) = (false, next_due));
    }

    /// A run of the key will be due then.
    pub fn expect(&mut self, key: &QueueKey, due: Timestamp) {
        self.change(key, |state| {
            state.next_due = Some(state.next_due.map_or(due, |known| known.min(due)));
        });
    }

    /// Older runs of another key wait for the same workers: a new run of this one takes its place behind
    /// them.
    pub fn contended(&self, key: &QueueKey) -> bool {
        let others = self.waiting.len() - usize::from(self.waiting.contains(key));
        if others == 0 {
            return false;
        }
        let Some(state) = self.keys.get(key) else { return false };
        let standing = state.demands.iter().filter_map(|id| self.demands.get(id));
        standing.flat_map(|standing| &standing.keys).any(|other| other != key && self.waiting.contains(other))
    }

    /// How many demands watch a key.
    pub fn watchers(&self, key: &QueueKey) -> usize {
        self.keys.get(key).map_or(0, |state| state.demands.len())
    }

    /// The demands that watch a key.
    pub fn demands(&self, key: &QueueKey) -> impl Iterator<Item = &Demand> {
        let ids = self.keys.get(key).map_or(&[][..], |state| &state.demands);
        ids.iter().filter_map(|id| self.demand(*id))
    }

    /// Whether somebody has room for a run of the key.
    fn has_room(&self, key: &QueueKey, room: impl Fn(&Demand) -> u32) -> bool {
        self.demands(key).any(|demand| room(demand) > 0)
    }

    /// The demand with the most room, so that work spreads over workers.
    pub fn roomiest(&self, key: &QueueKey, room: impl Fn(&Demand) -> u32) -> Option<&Demand> {
        self.demands(key)
            .map(|demand| (room(demand), demand))
            .filter(|(room, _)| *room > 0)
            .max_by_key(|(room, demand)| (*room, std::cmp::Reverse(demand.id)))
            .map(|(_, demand)| demand)
    }

    /// How many runs of the key could be given out now.
    pub fn room(&self, key: &QueueKey, room: impl Fn(&Demand) -> u32) -> usize {
        self.demands(key).map(|demand| room(demand) as usize).sum()
    }

    /// Keys whose backlog must be looked at, in a fixed order.
    pub fn backlogged(&self) -> Vec<QueueKey> {
        let mut keys: Vec<_> = self.waiting.iter().cloned().collect();
        keys.sort();
        keys
    }

    /// Whether a key has a backlog that somebody has room for.
    pub fn can_give(&self, room: impl Fn(&Demand) -> u32) -> bool {
        self.waiting.iter().any(|key| self.has_room(key, &room))
    }

    /// Runs wait, or may, for workers that stand by.
    pub fn crowded(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// A gate holds the key up.
    pub fn block(&mut self, key: &QueueKey) {
        self.change(key, |state| state.held = true);
    }

    /// Whether a gate is known to hold the key up.
    pub fn held(&self, key: &QueueKey) -> bool {
        self.keys.get(key).is_some_and(|state| state.held)
    }

    /// The gate may let something through again.
    pub fn unblock(&mut self, gate: &GateKey) {
        let covered = |(key, state): (&QueueKey, &KeyState)| {
            (state.held && gate.covers(&key.namespace, &key.task_queue, &key.workflow_type))
                .then(|| key.clone())
        };
        let held: Vec<QueueKey> = self.keys.iter().filter_map(covered).collect();
        held.iter().for_each(|key| self.change(key, |state| state.held = false));
    }

    /// A timer went off: keys that are due must be looked at.
    pub fn mark_due(&mut self, now: Timestamp) {
        while let Some((_, key)) = self.timers.first().filter(|(at, _)| *at <= now).cloned() {
            self.change(&key, |state| (state.backlog, state.next_due) = (true, None));
        }
    }

    /// Somebody says that a key, or any key, has due runs.
    pub fn mark(&mut self, key: Option<&QueueKey>) {
        match key {
            Some(key) => self.change(key, |state| (state.backlog, state.held) = (true, false)),
            None => self.mark_all(),
        }
    }

    /// Something was written behind our back, or a commit failed: look at everything again.
    pub fn mark_all(&mut self) {
        self.waiting.extend(self.keys.keys().cloned());
        self.keys.values_mut().for_each(|state| (state.backlog, state.held) = (true, false));
    }

    /// When the earliest watched run is due, among keys that somebody has room for.
    pub fn next_due(&self, room: impl Fn(&Demand) -> u32) -> Option<Timestamp> {
        self.timers.iter().find(|(_, key)| self.has_room(key, &room)).map(|(at, _)| *at)
    }
}
