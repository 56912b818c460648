//! The controls as the lane knows them: namespaces that were used, their gates, and what of it is not written
//! yet.

use std::sync::Arc;

use kagzi_model::{Gate, GateKey, GateScope, Name, Namespace};

use crate::{
    ControlSet, QueueKey, ServerControls,
    fold::LeaseMove,
    hash::{HashMap, HashSet},
};

/// Namespaces that are remembered.
const NAMESPACES_MAX: usize = 10_000;

/// What is set for one namespace.
pub struct Known {
    pub namespace: Namespace,
    gates: HashMap<GateScope, Gate>,
}

/// How a changed namespace is written.
enum Write {
    Implicit,
    Created,
    Updated { from: u64 },
}

/// Everything known so far. Dropped whole when a commit fails.
#[derive(Default)]
pub struct ControlCache {
    pub server: Arc<ServerControls>,
    known: HashMap<Name, Known>,
    /// Runs leased behind gates with a limit, as of this moment of the batch.
    leased: HashMap<GateKey, u32>,
    namespaces: HashMap<Name, Write>,
    gates: HashSet<GateKey>,
}

impl ControlCache {
    pub fn get(&self, namespace: &Name) -> Option<&Known> {
        self.known.get(namespace)
    }

    /// Adds what was loaded.
    pub fn know(&mut self, namespace: Namespace, gates: Vec<Gate>) {
        let gates = gates.into_iter().map(|gate| (gate.key.scope.clone(), gate)).collect();
        self.known.insert(namespace.name.clone(), Known { namespace, gates });
    }

    /// Adds a namespace that is used for the first time.
    pub fn add_implicit(&mut self, namespace: Namespace) {
        self.namespaces.insert(namespace.name.clone(), Write::Implicit);
        self.know(namespace, Vec::new());
    }

    /// Forgets a namespace without unwritten changes, so that it is loaded again.
    pub fn evict(&mut self, namespace: &Name) {
        if !self.namespaces.contains_key(namespace) {
            self.known.remove(namespace);
        }
    }

    /// A turn failed: what it relied on is looked up again, and what it changed is not true.
    pub fn forget_turn(&mut self, consulted: &HashSet<Name>) {
        consulted.iter().chain(self.namespaces.keys()).for_each(|name| drop(self.known.remove(name)));
        self.namespaces.clear();
        self.gates.clear();
        self.leased.clear();
    }

    /// Forgets namespaces when there are too many: any client may name new ones. Between turns only.
    pub fn make_room(&mut self) {
        if self.known.len() > NAMESPACES_MAX {
            self.known.clear();
            self.leased.clear();
        }
    }

    /// Takes over a namespace that was created or changed; it is written with the batch.
    pub fn put(&mut self, namespace: Namespace) {
        let name = namespace.name.clone();
        let from = self.known.get(&name).map(|known| known.namespace.version);
        let write = match (self.namespaces.remove(&name), from) {
            (Some(Write::Updated { from }), _) | (None, Some(from)) => Write::Updated { from },
            (Some(Write::Implicit | Write::Created), _) | (None, None) => Write::Created,
        };
        self.namespaces.insert(name.clone(), write);
        match self.known.get_mut(&name) {
            Some(known) => known.namespace = namespace,
            None => self.know(namespace, Vec::new()),
        }
    }

    /// Takes over a changed gate. Its namespace gets a new version, so that other servers notice.
    pub fn put_gate(&mut self, gate: Gate) {
        let known = self.known.get_mut(&gate.key.namespace).expect("the namespace of a gate is known");
        let namespace = Namespace { version: known.namespace.version + 1, ..known.namespace.clone() };
        self.leased.remove(&gate.key);
        self.gates.insert(gate.key.clone());
        known.gates.insert(gate.key.scope.clone(), gate);
        self.put(namespace);
    }

    /// Takes over gates as another server may have left them, and what is leased behind them.
    pub fn refresh(&mut self, locked: &[GateKey], found: Vec<(Gate, u32)>) {
        for key in locked {
            if let Some(known) = self.known.get_mut(&key.namespace) {
                known.gates.remove(&key.scope);
            }
        }
        for (gate, leased) in found {
            self.leased.insert(gate.key.clone(), leased);
            if let Some(known) = self.known.get_mut(&gate.key.namespace) {
                known.gates.insert(gate.key.scope.clone(), gate);
            }
        }
    }

    pub fn gate(&self, key: &GateKey) -> Option<&Gate> {
        self.known.get(&key.namespace)?.gates.get(&key.scope)
    }

    /// How many gates stand in a namespace.
    pub fn gates_len(&self, namespace: &Name) -> usize {
        self.known
            .get(namespace)
            .map_or(0, |known| known.gates.values().filter(|gate| !gate.is_open()).count())
    }

    /// The gates before a key that stop or limit it. Hardly any namespace has one, so asking costs nothing.
    pub fn before(&self, key: &QueueKey) -> Vec<&Gate> {
        let QueueKey { namespace, task_queue, workflow_type } = key;
        match self.known.get(namespace) {
            Some(known) if !known.gates.is_empty() => {
                let gates = GateKey::before(namespace, task_queue, workflow_type).into_iter();
                gates.filter_map(|key| known.gates.get(&key.scope)).filter(|gate| !gate.is_open()).collect()
            }
            Some(_) | None => Vec::new(),
        }
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

    /// Forgets the counts: other servers lease too.
    pub fn forget_counts(&mut self) {
        self.leased.clear();
    }

    /// The rows that changed.
    pub fn drain(&mut self) -> ControlSet {
        let mut set = ControlSet::default();
        for (name, write) in self.namespaces.drain() {
            let Some(known) = self.known.get(&name) else { continue };
            let row = known.namespace.clone();
            match write {
                Write::Implicit => set.implicit.push(row),
                Write::Created => set.created.push(row),
                Write::Updated { from } => set.updated.push((from, row)),
            }
        }
        for key in self.gates.drain() {
            let gates = self.known.get_mut(&key.namespace).map(|known| &mut known.gates);
            let Some(gates) = gates else { continue };
            set.gates.extend(gates.get(&key.scope).cloned());
            if gates.get(&key.scope).is_some_and(Gate::is_open) {
                gates.remove(&key.scope);
            }
        }
        set
    }

    /// Forgets everything; loaded again when needed.
    pub fn clear(&mut self) {
        *self = ControlCache { server: self.server.clone(), ..ControlCache::default() };
    }
}
