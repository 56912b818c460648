//! What operators set, as the contract says it: namespaces, and gates before their queues and types.

use std::collections::HashMap;

use async_trait::async_trait;
use kagzi_model::{Defaults, Gate, GateCommand, GateKey, Name, Namespace, NamespaceCommand, Timestamp};

use crate::StoreError;

/// Creates or changes a namespace. With it, in the same commit, the gate before all its queues may be
/// changed. Answered with the row as it is now.
#[derive(Debug, Clone)]
pub struct ChangeNamespace {
    pub name: Name,
    pub command: NamespaceCommand,
    pub gate: Option<GateCommand>,
}

/// Pauses, resumes or limits what is behind a gate. Answered with the gate as it is now.
#[derive(Debug, Clone)]
pub struct ChangeGate {
    pub key: GateKey,
    pub command: GateCommand,
}

/// What one server adds to the controls: it fills what neither run nor namespace sets.
#[derive(Debug, Clone)]
pub struct ServerControls {
    pub defaults: Defaults,
    /// A namespace that nobody created is made by the first start or worker that names it; else both are
    /// refused.
    pub create_namespaces: bool,
    /// So many are made that way until the server is started again; more have to be created by somebody.
    pub namespaces_made_max: u64,
    /// A run that loses its worker this often in a row without progress is quarantined.
    pub worker_losses_max: u32,
}

impl Default for ServerControls {
    fn default() -> Self {
        ServerControls {
            defaults: Defaults::default(),
            create_namespaces: true,
            namespaces_made_max: u64::MAX,
            worker_losses_max: kagzi_model::limits::LOSSES_STANDARD,
        }
    }
}

/// Reading what is set, and how full the queues are.
#[async_trait]
pub trait ControlReads: Send + Sync + 'static {
    async fn namespace(&self, name: &Name) -> Result<Option<Namespace>, StoreError>;
    /// Namespaces in the order of their names, after one of them.
    async fn namespaces(
        &self,
        after: Option<&Name>,
        limit: usize,
    ) -> Result<Vec<ListedNamespace>, StoreError>;
    /// The gates of a namespace, the widest first.
    async fn gates(&self, namespace: &Name) -> Result<Vec<Gate>, StoreError>;
    /// Living runs by queue and type, in that order.
    async fn depths(&self, namespace: &Name, now: Timestamp) -> Result<Vec<Depth>, StoreError>;
}

/// A namespace as a listing finds it.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedNamespace {
    pub name: Name,
    /// Its settings, or why they cannot be read: they are damaged, or a newer server wrote them.
    pub read: Result<Namespace, String>,
}

impl ListedNamespace {
    /// What was read; only what is wrong with the row itself is passed over.
    pub fn of(name: Name, read: Result<Namespace, StoreError>) -> Result<ListedNamespace, StoreError> {
        match read {
            Ok(namespace) => Ok(ListedNamespace { name, read: Ok(namespace) }),
            Err(StoreError::Corrupt(why)) => Ok(ListedNamespace { name, read: Err(why) }),
            Err(error) => Err(error),
        }
    }
}

/// How many runs of one queue and type live, and how long the first has been ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Depth {
    pub task_queue: Name,
    pub workflow_type: Name,
    /// Due now, without a worker.
    pub ready: u64,
    /// Due later: sleeping, or waiting for a retry.
    pub waiting: u64,
    pub leased: u64,
    pub oldest_ready_at: Option<Timestamp>,
}

impl Depth {
    /// Adds what is leased, by queue and type, to what is due.
    pub fn with_leased(mut due: Vec<Depth>, mut leased: HashMap<(Name, Name), u64>) -> Vec<Depth> {
        for depth in &mut due {
            let key = (depth.task_queue.clone(), depth.workflow_type.clone());
            depth.leased = leased.remove(&key).unwrap_or(0);
        }
        due.extend(leased.into_iter().map(|((task_queue, workflow_type), leased)| Depth {
            task_queue,
            workflow_type,
            ready: 0,
            waiting: 0,
            leased,
            oldest_ready_at: None,
        }));
        due.sort_by(|a, b| (&a.task_queue, &a.workflow_type).cmp(&(&b.task_queue, &b.workflow_type)));
        due
    }
}
