//! Nouns of the reference store.

use async_trait::async_trait;
use kagzi_model::{Name, NounKey, NounRow};

use super::{MemoryBackend, MemoryReads};
use crate::{Direction, NounReads, NounRows, StoreError};

impl NounRows for MemoryBackend {
    async fn load_noun(&mut self, key: &NounKey) -> Result<Option<NounRow>, StoreError> {
        Ok(self.working.nouns.get(key).cloned())
    }

    async fn nouns_of(
        &mut self,
        namespace: &Name,
        kind: &str,
        limit: usize,
    ) -> Result<Vec<NounRow>, StoreError> {
        let of_kind = |row: &&NounRow| row.key.namespace == *namespace && *row.key.kind == *kind;
        Ok(self.working.nouns.values().filter(of_kind).take(limit).cloned().collect())
    }
}

#[async_trait]
impl NounReads for MemoryReads {
    async fn nouns(
        &self,
        namespace: &Name,
        kind: &str,
        direction: Direction,
        from: Option<&Name>,
        limit: usize,
    ) -> Result<Vec<NounRow>, StoreError> {
        let tables = self.tables.read();
        let of_kind = |row: &&NounRow| row.key.namespace == *namespace && *row.key.kind == *kind;
        let rows = tables.nouns.values().filter(of_kind);
        Ok(match direction {
            Direction::Next => {
                let behind = rows.filter(|row| from.is_none_or(|from| row.key.id > *from));
                behind.take(limit).cloned().collect()
            }
            Direction::Prev => {
                let before = rows.filter(|row| from.is_none_or(|from| row.key.id < *from));
                before.rev().take(limit).cloned().collect()
            }
        })
    }
}
