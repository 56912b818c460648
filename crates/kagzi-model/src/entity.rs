//! What stands in a table of its own beside the runs: workers, schedules, namespaces, gates.

use std::hash::Hash;

use crate::{
    Gate, GateKey, Name, Namespace, Worker, WorkerId,
    schedule::{Schedule, ScheduleKey},
};

/// A row with a key, that is changed by commands of its own and guarded by its version. Its rules are pure
/// functions beside its type (`Worker::decide`, `Namespace::decide`, …); whoever hosts it needs no more than
/// this.
pub trait Entity: Clone {
    type Key: Clone + Eq + Hash + Ord;

    fn key(&self) -> Self::Key;
    /// Rises with every change of the row: a write names the version that it replaces, and another one there
    /// means that somebody else was first.
    fn version(&self) -> u64;
}

impl Entity for Worker {
    type Key = WorkerId;

    fn key(&self) -> WorkerId {
        self.id
    }

    fn version(&self) -> u64 {
        self.row_version
    }
}

impl Entity for Schedule {
    type Key = ScheduleKey;

    fn key(&self) -> ScheduleKey {
        Schedule::key(self)
    }

    fn version(&self) -> u64 {
        self.version
    }
}

impl Entity for Namespace {
    type Key = Name;

    fn key(&self) -> Name {
        self.name.clone()
    }

    fn version(&self) -> u64 {
        self.version
    }
}

impl Entity for Gate {
    type Key = GateKey;

    fn key(&self) -> GateKey {
        self.key.clone()
    }

    /// None of its own: every change of a gate raises the version of its namespace, in the same commit.
    fn version(&self) -> u64 {
        0
    }
}
