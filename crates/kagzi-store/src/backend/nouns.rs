//! Nouns: what the lane asks of their table.

use std::future::Future;

use kagzi_model::{Name, NounKey, NounRow};

use crate::StoreError;

/// Nouns, for the connection that writes.
pub trait NounRows: Send {
    /// One noun.
    fn load_noun(
        &mut self,
        key: &NounKey,
    ) -> impl Future<Output = Result<Option<NounRow>, StoreError>> + Send;
    /// The first so many nouns of a kind, in the order of their ids.
    fn nouns_of(
        &mut self,
        namespace: &Name,
        kind: &str,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<NounRow>, StoreError>> + Send;
}
