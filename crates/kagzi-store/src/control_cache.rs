//! The controls as the lane knows them: namespaces that were used, their gates, and how many runs are leased
//! behind these.

use std::sync::Arc;

use kagzi_model::{Gate, GateKey, Name, Namespace};

use crate::{
    QueueKey, ServerControls,
    fold::LeaseMove,
    hash::{HashMap, HashSet},
    table::Table,
    topics::TopicMemory,
};

/// Namespaces that are remembered.
const NAMESPACES_MAX: usize = 10_000;

/// Everything known so far. Dropped whole when a commit fails.
#[derive(Default)]
pub struct ControlCache {
    pub server: Arc<ServerControls>,
    pub namespaces: Table<Namespace>,
    /// All gates of the namespaces that are known.
    pub gates: Table<Gate>,
    /// Namespaces that have gates. Hardly any has one, so asking costs nothing.
    gated: HashSet<Name>,
    /// Runs leased behind gates with a limit, as of this moment of the batch.
    leased: HashMap<GateKey, u32>,
    /// What is remembered about topics of events.
    pub topics: TopicMemory,
}

impl ControlCache {
    /// A turn begins.
    pub fn begin(&mut self, shared: bool) {
        self.namespaces.begin();
        self.gates.begin();
        if shared {
            // Other servers lease too.
            self.leased.clear();
        }
    }

    pub fn get(&self, namespace: &Name) -> Option<&Namespace> {
        self.namespaces.get(namespace)
    }

    /// Adds what was loaded.
    pub fn know(&mut self, namespace: Namespace, gates: Vec<Gate>) {
        if !gates.is_empty() {
            self.gated.insert(namespace.name.clone());
        }
        gates.into_iter().for_each(|gate| self.gates.know(gate, ()));
        self.namespaces.know(namespace, ());
    }

    /// Forgets a namespace without unwritten changes, so that it is loaded again.
    pub fn evict(&mut self, namespace: &Name) {
        if self.namespaces.evict(namespace) {
            self.forget_gates(namespace);
        }
    }

    /// A turn failed: what it relied on is looked up again, and what it changed is not true.
    pub fn forget_turn(&mut self, consulted: &HashSet<Name>) {
        let changed = self.namespaces.forget_turn();
        self.gates.forget_turn();
        for name in consulted.iter().chain(&changed) {
            self.namespaces.forget(name);
            self.forget_gates(name);
        }
        self.leased.clear();
    }

    fn forget_gates(&mut self, namespace: &Name) {
        if self.gated.remove(namespace) {
            let gone: Vec<GateKey> =
                self.gates.keys().filter(|key| key.namespace == *namespace).cloned().collect();
            gone.iter().for_each(|key| self.gates.forget(key));
        }
    }

    /// Forgets namespaces when there are too many: any client may name new ones. Between turns only.
    pub fn make_room(&mut self) {
        if self.namespaces.len() > NAMESPACES_MAX {
            self.clear();
        }
    }

    /// Takes over a changed gate; one that lets everything through is deleted. Its namespace gets a new
    /// version, so that other servers notice.
    pub fn put_gate(&mut self, gate: Gate) {
        let namespace = gate.key.namespace.clone();
        self.namespaces.change(&namespace, |row| row.version += 1);
        self.leased.remove(&gate.key);
        self.gated.insert(namespace);
        match gate.is_open() {
            true => self.gates.delete(&gate.key),
            false => self.gates.put(gate),
        }
    }

    /// Takes over gates as another server may have left them, and what is leased behind them.
    pub fn refresh(&mut self, locked: &[GateKey], found: Vec<(Gate, u32)>) {
        locked.iter().for_each(|key| self.gates.forget(key));
        for (gate, leased) in found {
            self.leased.insert(gate.key.clone(), leased);
            self.gates.know(gate, ());
        }
    }

    pub fn gate(&self, key: &GateKey) -> Option<&Gate> {
        self.gates.get(key)
    }

    /// How many gates stand in a namespace.
    pub fn gates_len(&self, namespace: &Name) -> usize {
        self.gates.keys().filter(|key| key.namespace == *namespace).count()
    }

    /// The gates before a key that stop or limit it.
    pub fn before(&self, key: &QueueKey) -> Vec<&Gate> {
        let QueueKey { namespace, task_queue, workflow_type } = key;
        if !self.gated.contains(namespace) {
            return Vec::new();
        }
        let gates = GateKey::before(namespace, task_queue, workflow_type);
        gates.iter().filter_map(|key| self.gates.get(key)).collect()
    }

    /// How many runs of a key the gates let through. Their leases must have been counted.
    pub fn room(&self, key: &QueueKey) -> usize {
        let room = |gate: &&Gate| gate.room(self.leased.get(&gate.key).copied().unwrap_or(u32::MAX));
        self.before(key).iter().map(room).min().map_or(usize::MAX, |room| room as usize)
    }

    /// Whether the gate lets a run through, as far as is known.
    pub fn may_pass(&self, key: &GateKey) -> bool {
        let leased = self.leased.get(key).copied().unwrap_or(0);
        self.gate(key).is_none_or(|gate| gate.room(leased) > 0)
    }

    pub fn counted(&self, key: &GateKey) -> bool {
        self.leased.contains_key(key)
    }

    /// Notes what the database counted.
    pub fn set_leased(&mut self, key: GateKey, leased: u32) {
        self.leased.insert(key, leased);
    }

    /// Counts a lease that began or ended, behind the gates that are counted.
    pub fn count(&mut self, moved: &LeaseMove) {
        if self.leased.is_empty() {
            return;
        }
        let QueueKey { namespace, task_queue, workflow_type } = &moved.key;
        for key in GateKey::before(namespace, task_queue, workflow_type) {
            if let Some(leased) = self.leased.get_mut(&key) {
                *leased = if moved.begun { *leased + 1 } else { leased.saturating_sub(1) };
            }
        }
    }

    /// Forgets everything; loaded again when needed.
    pub fn clear(&mut self) {
        *self = ControlCache { server: self.server.clone(), ..ControlCache::default() };
    }
}

#[cfg(test)]
mod tests {
    use kagzi_model::Timestamp;

    use super::*;

    #[test]
    fn namespaces_that_clients_make_up_are_not_remembered_for_ever() {
        let mut cache = ControlCache::default();
        for number in 0..=NAMESPACES_MAX {
            cache.know(Namespace::new(format!("n-{number}").into(), Timestamp(0)), Vec::new());
        }

        cache.make_room();

        assert_eq!((cache.namespaces.len(), cache.gates.len()), (0, 0));
    }
}
