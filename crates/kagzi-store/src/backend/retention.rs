//! Retention: what the lane asks of the tables of runs that ended long ago.

use std::future::Future;

use kagzi_model::{Millis, Name, Namespace, RunKey, Timestamp};

use crate::StoreError;

/// Which runs past their retention to find.
#[derive(Debug, Clone)]
pub struct RetireQuery<'a> {
    pub now: Timestamp,
    /// How long runs are kept in a namespace that does not say; none = for ever.
    pub keep_ms: Option<Millis>,
    /// Only in namespaces behind this one.
    pub after: &'a Name,
    pub limit: usize,
}

impl RetireQuery<'_> {
    /// Up to when runs must have ended, in a namespace that keeps them for so long itself.
    pub fn until(&self, own: Option<Millis>) -> Option<Timestamp> {
        Namespace::retired_until(self.now, own, self.keep_ms)
    }
}

/// What ended long ago, for the connection that writes.
pub trait RetentionRows: Send {
    /// Runs that are past their retention, with when they were created, namespace by namespace. What another
    /// server is deleting at this moment is passed over.
    fn retirable(
        &mut self,
        query: &RetireQuery<'_>,
    ) -> impl Future<Output = Result<Vec<(RunKey, Timestamp)>, StoreError>> + Send;
    /// Deletes the rows and labels of runs, and remembers that their events are still to go.
    fn retire(&mut self, keys: &[RunKey]) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// Deletes up to `limit` rows of events of retired runs, and says how many.
    fn purge(&mut self, limit: usize) -> impl Future<Output = Result<usize, StoreError>> + Send;
}
