//! Nouns: what the lane asks of their table.

use std::future::Future;

use kagzi_model::{NounKey, NounRow};

use crate::StoreError;

/// Nouns, for the connection that writes.
pub trait NounRows: Send {
    /// One noun.
    fn load_noun(
        &mut self,
        key: &NounKey,
    ) -> impl Future<Output = Result<Option<NounRow>, StoreError>> + Send;
}
