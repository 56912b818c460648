//! The controls of the reference store.

use std::collections::BTreeMap;

use async_trait::async_trait;
use kagzi_model::{DEFAULT_NAMESPACE, Gate, GateKey, Name, Namespace, Timestamp};

use super::{MemoryBackend, MemoryReads, Tables};
use crate::{ControlReads, ControlRows, Depth, ListedNamespace, StoreError};

impl ControlRows for MemoryBackend {
    async fn load_controls(
        &mut self,
        namespace: &Name,
    ) -> Result<Option<(Namespace, Vec<Gate>)>, StoreError> {
        let tables = &self.working;
        Ok(tables.namespaces.get(namespace).map(|row| (row.clone(), tables.gates_of(namespace))))
    }

    async fn leased_behind(&mut self, key: &GateKey) -> Result<u32, StoreError> {
        let leased = self.working.runs.values().filter(|run| run.lease().is_some());
        let behind = leased.filter(|run| key.covers(&run.namespace, &run.task_queue, &run.workflow_type));
        Ok(behind.count() as u32)
    }
}

impl Tables {
    /// Empty tables, but for the namespace that always exists.
    pub(super) fn new(now: Timestamp) -> Self {
        let default = Namespace::new(DEFAULT_NAMESPACE.into(), now);
        Tables { namespaces: BTreeMap::from([(default.name.clone(), default)]), ..Tables::default() }
    }

    fn gates_of(&self, namespace: &Name) -> Vec<Gate> {
        self.gates.values().filter(|gate| gate.key.namespace == *namespace).cloned().collect()
    }
}

#[async_trait]
impl ControlReads for MemoryReads {
    async fn namespace(&self, name: &Name) -> Result<Option<Namespace>, StoreError> {
        Ok(self.tables.read().namespaces.get(name).cloned())
    }

    async fn namespaces(
        &self,
        after: Option<&Name>,
        limit: usize,
    ) -> Result<Vec<ListedNamespace>, StoreError> {
        let tables = self.tables.read();
        let rows = tables.namespaces.values().filter(|row| after.is_none_or(|after| row.name > *after));
        rows.take(limit).map(|row| ListedNamespace::of(row.name.clone(), Ok(row.clone()))).collect()
    }

    async fn gates(&self, namespace: &Name) -> Result<Vec<Gate>, StoreError> {
        let mut gates = self.tables.read().gates_of(namespace);
        gates.sort_by(|a, b| a.key.columns().cmp(&b.key.columns()));
        Ok(gates)
    }

    async fn depths(&self, namespace: &Name, now: Timestamp) -> Result<Vec<Depth>, StoreError> {
        let tables = self.tables.read();
        let mut depths: BTreeMap<(Name, Name), Depth> = BTreeMap::new();
        for run in tables.runs.values().filter(|run| run.namespace == *namespace) {
            let (due, leased) = (run.due_at(), run.lease().is_some());
            if due.is_none() && !leased {
                continue;
            }
            let key = (run.task_queue.clone(), run.workflow_type.clone());
            let depth = depths.entry(key).or_insert_with(|| Depth {
                task_queue: run.task_queue.clone(),
                workflow_type: run.workflow_type.clone(),
                ready: 0,
                waiting: 0,
                leased: 0,
                oldest_ready_at: None,
            });
            depth.leased += u64::from(leased);
            match due {
                Some(at) if at <= now => {
                    depth.ready += 1;
                    depth.oldest_ready_at = Some(depth.oldest_ready_at.map_or(at, |known| known.min(at)));
                }
                Some(_) => depth.waiting += 1,
                None => {}
            }
        }
        Ok(depths.into_values().collect())
    }
}
