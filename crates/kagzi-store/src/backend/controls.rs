//! Namespaces and gates: what the lane asks of their tables.

use std::future::Future;

use kagzi_model::{Gate, GateKey, Name, Namespace};

use crate::StoreError;

/// Namespaces and gates, for the connection that writes.
pub trait ControlRows: Send {
    /// A namespace with its gates.
    fn load_controls(
        &mut self,
        namespace: &Name,
    ) -> impl Future<Output = Result<Option<(Namespace, Vec<Gate>)>, StoreError>> + Send;
    /// How many runs behind the gate are leased.
    fn leased_behind(&mut self, key: &GateKey) -> impl Future<Output = Result<u32, StoreError>> + Send;
    /// Where several servers share the database: holds these gates until the commit, so that no other server
    /// claims behind one meanwhile, and reads those that still exist, with the runs leased behind each.
    fn lock_gates(
        &mut self,
        _keys: &[GateKey],
    ) -> impl Future<Output = Result<Vec<(Gate, u32)>, StoreError>> + Send {
        async { Err(StoreError::Bug("a database of one server has nobody to lock gates against".into())) }
    }
    /// Where several servers share the database: the commit is a [`StoreError::Conflict`] unless the
    /// namespaces still have these versions, and none of them changes before it is done.
    fn require_versions(&mut self, _versions: Vec<(Name, u64)>) {}
}
