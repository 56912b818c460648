//! Nouns in a store: how they are changed, and what people read.

use std::sync::Arc;

use async_trait::async_trait;
use kagzi_model::{Name, NounRow, NounRule};

use crate::{Direction, StoreError};

/// Changes one noun, as its rule decides. Answered with the noun as it is now; for a deletion, as it was.
pub struct ChangeNoun(pub Arc<dyn NounRule>);

/// Nouns, for people.
#[async_trait]
pub trait NounReads: Send + Sync {
    /// Nouns of a kind, in the order of their ids, from the one behind `from` on; those before `from`, the
    /// nearest first, when the direction is back.
    async fn nouns(
        &self,
        namespace: &Name,
        kind: &str,
        direction: Direction,
        from: Option<&Name>,
        limit: usize,
    ) -> Result<Vec<NounRow>, StoreError>;
}
