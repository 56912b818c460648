//! Small nouns: changed by their own rules, and listed by their ids.

use std::sync::Arc;

use kagzi_model::{Name, Noun, NounRow, NounRule};
use kagzi_store::{ChangeNoun, Direction, Page, TOTAL_MAX, Total};

use crate::{Engine, EngineError};

/// Nouns that are read at once where all of them are counted.
const CHUNK_LEN: usize = 1_000;

impl Engine {
    /// Changes a noun as its rule decides.
    pub async fn change_noun(&self, rule: impl NounRule + 'static) -> Result<NounRow, EngineError> {
        Ok(self.store().ask(ChangeNoun(Arc::new(rule))).await??)
    }

    /// One noun, if it is there.
    pub async fn noun<N: Noun>(&self, namespace: &Name, id: &Name) -> Result<Option<N>, EngineError> {
        // Lists begin behind a name, so the nearest one before the next possible name is this one or none.
        let behind = Name::from(format!("{id}\u{1}"));
        let rows = self.store().nouns(namespace, N::KIND, Direction::Prev, Some(&behind), 1).await?;
        let row = rows.into_iter().find(|row| row.key.id == *id);
        Ok(row.map(|row| row.read()).transpose()?)
    }

    /// A page of the nouns of one kind, by their ids, in the order of the list whichever way it is read.
    pub async fn list_nouns(
        &self,
        (namespace, kind): (&Name, &str),
        direction: Direction,
        from: Option<&Name>,
        limit: usize,
    ) -> Result<Page<NounRow>, EngineError> {
        let mut rows = self.store().nouns(namespace, kind, direction, from, limit + 1).await?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let (has_next, has_prev) = match direction {
            Direction::Next => (more, from.is_some()),
            Direction::Prev => {
                rows.reverse();
                (from.is_some(), more)
            }
        };
        Ok(Page { rows, has_next, has_prev, ..Page::empty() })
    }

    /// How many nouns of a kind there are, counted no further than [`TOTAL_MAX`].
    pub async fn count_nouns(&self, (namespace, kind): (&Name, &str)) -> Result<Total, EngineError> {
        let (mut counted, mut after) = (0, None);
        while counted <= TOTAL_MAX {
            let chunk =
                self.store().nouns(namespace, kind, Direction::Next, after.as_ref(), CHUNK_LEN).await?;
            counted += chunk.len() as u64;
            match chunk.into_iter().last().filter(|_| counted.is_multiple_of(CHUNK_LEN as u64)) {
                Some(last) => after = Some(last.key.id),
                None => break,
            }
        }
        Ok(Total::of(counted))
    }
}
