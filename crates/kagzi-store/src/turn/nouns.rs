//! The nouns' part of a turn: each request brings its own rule.

use kagzi_model::{NounChange, NounKey, NounRejection, NounRow, NounRule};

use super::Turn;
use crate::{Backend, StoreError};

impl<B: Backend> Turn<'_, B> {
    /// Decides a request about a noun.
    pub(super) async fn change_noun(
        &mut self,
        rule: &dyn NounRule,
    ) -> Result<Result<NounRow, NounRejection>, StoreError> {
        let key = rule.key();
        let known = self.load_noun(&key).await?;
        // The repeat of what was done before is answered all the same.
        if rule.creates()
            && known.is_none()
            && let Err(refused) = self.admit_to(&key.namespace).await?
        {
            return Ok(Err(NounRejection::NotAdmitted(refused)));
        }
        if rule.creates() && known.is_none() {
            // Those of this batch count too.
            self.flush_before_search().await?;
            let max = rule.max();
            if self.backend.nouns_of(&key.namespace, &key.kind, max).await?.len() == max {
                return Ok(Err(NounRejection::TooMany { key, max }));
            }
        }
        self.controls.topics.somebody_listens();
        self.topics.forget_triggers(&key.namespace);
        Ok(rule.decide(self.now, known.as_ref()).map(|change| match change {
            NounChange::Nothing(noun) => noun,
            NounChange::Put(noun) => {
                self.nouns.put(noun.clone());
                noun
            }
            NounChange::Delete(noun) => {
                self.nouns.delete(&key);
                noun
            }
        }))
    }

    async fn load_noun(&mut self, key: &NounKey) -> Result<Option<NounRow>, StoreError> {
        if !self.nouns.is_settled(key)
            && let Some(noun) = self.backend.load_noun(key).await?
        {
            self.nouns.know(noun, ());
        }
        Ok(self.nouns.get(key).cloned())
    }
}
