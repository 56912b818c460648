//! What stands in a table of its own beside the runs: workers, schedules, namespaces, gates.

use std::hash::Hash;

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
