//! The board: which workers stand by for which runs, and what is known of the queues they watch.

use std::collections::BTreeMap;

use kagzi_model::{GateKey, Name, Timestamp, WorkerId};

use crate::{
    Demand, QueueKey,
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
    pub backlog: bool,
    /// A gate lets nothing of the key through: looking is of no use until it opens, a lease behind it ends, or
    /// somebody says so.
    pub held: bool,
    /// When the next sleeping or retrying run is due; unknown only while `backlog` is set.
    pub next_due: Option<Timestamp>,
}

/// All demands of this process.
#[derive(Default)]
pub struct Board {
    demands: BTreeMap<u64, StandBy>,
    keys: HashMap<QueueKey, KeyState>,
}

impl Board {
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
            let state = self
                .keys
                .entry(key.clone())
                .or_insert_with(|| KeyState { backlog: true, ..KeyState::default() });
            state.demands.push(demand.id);
        }
        self.demands.insert(demand.id, StandBy { demand, keys });
    }

    /// Removes a demand and the keys that nobody watches any more.
    pub fn remove(&mut self, id: u64) {
        let Some(standing) = self.demands.remove(&id) else { return };
        for key in standing.keys {
            if let Some(state) = self.keys.get_mut(&key) {
                state.demands.retain(|other| *other != id);
                if state.demands.is_empty() {
                    self.keys.remove(&key);
                }
            }
        }
    }

    /// Removes all demands of a worker that takes no more work.
    pub fn remove_worker(&mut self, worker: WorkerId) {
        let gone: Vec<u64> = self
            .demands
            .values()
            .filter(|standing| standing.demand.worker == worker)
            .map(|standing| standing.demand.id)
            .collect();
        gone.into_iter().for_each(|id| self.remove(id));
    }

    /// Who stands by.
    pub fn workers(&self) -> HashSet<WorkerId> {
        self.demands.values().map(|standing| standing.demand.worker).collect()
    }

    /// The worker stands by with polls alone, not with a stream.
    pub fn only_polls(&self, worker: WorkerId) -> bool {
        self.demands_of(worker).all(|demand| demand.once)
    }

    pub fn stands(&self, worker: WorkerId) -> bool {
        self.demands_of(worker).next().is_some()
    }

    fn demands_of(&self, worker: WorkerId) -> impl Iterator<Item = &Demand> {
        self.demands.values().map(|standing| &standing.demand).filter(move |demand| demand.worker == worker)
    }

    pub fn demand(&self, id: u64) -> Option<&Demand> {
        self.demands.get(&id).map(|standing| &standing.demand)
    }

    pub fn watches(&self, key: &QueueKey) -> bool {
        self.keys.contains_key(key)
    }

    pub fn key_mut(&mut self, key: &QueueKey) -> Option<&mut KeyState> {
        self.keys.get_mut(key)
    }

    /// The demand with the most room, so that work spreads over workers.
    pub fn roomiest(&self, key: &QueueKey, room: impl Fn(&Demand) -> u32) -> Option<&Demand> {
        self.keys
            .get(key)?
            .demands
            .iter()
            .filter_map(|id| self.demand(*id))
            .map(|demand| (room(demand), demand))
            .filter(|(room, _)| *room > 0)
            .max_by_key(|(room, demand)| (*room, std::cmp::Reverse(demand.id)))
            .map(|(_, demand)| demand)
    }

    /// How many runs of the key could be given out now.
    pub fn room(&self, key: &QueueKey, room: impl Fn(&Demand) -> u32) -> usize {
        let Some(state) = self.keys.get(key) else { return 0 };
        state.demands.iter().filter_map(|id| self.demand(*id)).map(|demand| room(demand) as usize).sum()
    }

    /// Keys whose backlog must be looked at, in a fixed order.
    pub fn backlogged(&self) -> Vec<QueueKey> {
        let look = |state: &KeyState| state.backlog && !state.held;
        let mut keys: Vec<_> =
            self.keys.iter().filter(|(_, state)| look(state)).map(|(key, _)| key.clone()).collect();
        keys.sort();
        keys
    }

    /// Runs wait, or may, for workers that stand by.
    pub fn crowded(&self) -> bool {
        self.keys.values().any(|state| state.backlog && !state.held)
    }

    /// A gate holds the key up.
    pub fn hold(&mut self, key: &QueueKey) {
        if let Some(state) = self.keys.get_mut(key) {
            state.held = true;
        }
    }

    /// Whether a gate is known to hold the key up.
    pub fn held(&self, key: &QueueKey) -> bool {
        self.keys.get(key).is_some_and(|state| state.held)
    }

    /// The gate may let something through again.
    pub fn let_go(&mut self, gate: &GateKey) {
        for (key, state) in &mut self.keys {
            if state.held && gate.covers(&key.namespace, &key.task_queue, &key.workflow_type) {
                state.held = false;
            }
        }
    }

    /// A timer went off: keys that are due must be looked at.
    pub fn mark_due(&mut self, now: Timestamp) {
        for state in self.keys.values_mut() {
            if state.next_due.is_some_and(|at| at <= now) {
                state.backlog = true;
                state.next_due = None;
            }
        }
    }

    /// Somebody says that a key, or any key, has due runs.
    pub fn mark(&mut self, key: Option<&QueueKey>) {
        match key {
            Some(key) => {
                if let Some(state) = self.keys.get_mut(key) {
                    (state.backlog, state.held) = (true, false);
                }
            }
            None => self.mark_all(),
        }
    }

    /// Something was written behind our back, or a commit failed: look at everything again.
    pub fn mark_all(&mut self) {
        self.keys.values_mut().for_each(|state| (state.backlog, state.held) = (true, false));
    }

    /// When the earliest watched run is due, among keys that somebody has room for.
    pub fn next_due(&self, room: impl Fn(&Demand) -> u32) -> Option<Timestamp> {
        self.keys
            .iter()
            .filter(|(key, state)| state.next_due.is_some() && self.roomiest(key, &room).is_some())
            .filter_map(|(_, state)| state.next_due)
            .min()
    }
}
