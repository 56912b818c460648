//! Retention's part of a turn: runs that ended long ago go, a few at a time.

use std::collections::{HashMap, HashSet};

use kagzi_model::{Millis, Name, RunId, Timestamp, handler_ids};

use super::Turn;
use crate::{Backend, RetireQuery, RunKey, StoreError, Swept};

/// Runs deleted in one turn. A hundred rows take a few milliseconds, which is what a claim may wait for them.
const RETIRE_LEN_MAX: usize = 100;
/// Rows of events deleted in one turn. A run may have a hundred thousand: they go piece by piece.
const PURGE_LEN_MAX: usize = 2_000;
/// Searches in one turn: one is enough, unless what it finds must be kept.
const SEARCHES_MAX: usize = 10;

impl<B: Backend> Turn<'_, B> {
    /// Deletes runs that are past the retention of their namespace, or past `keep_ms` where it sets none,
    /// with their labels, and events of runs that are deleted. What business ids named them is free again at
    /// once.
    pub(super) async fn retire(&mut self, keep_ms: Option<Millis>) -> Result<Swept, StoreError> {
        // Rows of this batch must be visible to the search: one of them may have been reopened, and a
        // namespace may keep its runs for longer.
        self.flush_before_search().await?;
        let (keys, full) = self.past_retention(keep_ms).await?;
        let count = keys.len();
        if count > 0 {
            self.backend.retire(&keys).await?;
            keys.iter().for_each(|key| self.fold.forget(key.id));
        }
        let purged = self.backend.purge(PURGE_LEN_MAX).await?;
        let more = full || purged == PURGE_LEN_MAX;
        self.wrote |= count + purged > 0;
        self.counters.runs_retired += count as u64;
        self.counters.events_retired += purged as u64;
        // Those that are kept would be found again at once, and again: only what moves on is more to do.
        Ok(Swept { count, more: more && count + purged > 0, next_at: None })
    }

    /// Runs to delete in this turn, and whether there may be more.
    async fn past_retention(&mut self, keep_ms: Option<Millis>) -> Result<(Vec<RunKey>, bool), StoreError> {
        let (mut keys, mut after, mut more) = (Vec::new(), Name::empty(), false);
        for _ in 0..SEARCHES_MAX {
            let limit = RETIRE_LEN_MAX - keys.len();
            let query = RetireQuery { now: self.now, keep_ms, after: &after, limit };
            let found = self.backend.retirable(&query).await?;
            let full = found.len() == limit;
            more |= full;
            let kept = self.with_living_handlers(&found).await?;
            // What one namespace must keep does not stand in the way of the next ones.
            after = found.last().map_or(after, |(key, _)| key.namespace.clone());
            keys.extend(found.into_iter().map(|(key, _)| key).filter(|key| !kept.contains(&key.id)));
            if !full || keys.len() == RETIRE_LEN_MAX {
                break;
            }
        }
        keys.sort_unstable();
        Ok((keys, more))
    }

    /// Runs whose failure handler has not ended: its input is composed from them, so they stay. Whatever
    /// their status is now: a quarantined run starts its handler, and may be resumed and complete before the
    /// handler is taken up. The id of a handler follows from its run, so no history is read for it.
    async fn with_living_handlers(
        &mut self,
        found: &[(RunKey, Timestamp)],
    ) -> Result<HashSet<RunId>, StoreError> {
        let mut handled = HashMap::new();
        for (RunKey { id: run, namespace }, created_at) in found {
            for handler in handler_ids(*run, *created_at) {
                handled.insert(RunKey { id: handler, namespace: namespace.clone() }, *run);
            }
        }
        let mut handlers: Vec<RunKey> = handled.keys().cloned().collect();
        handlers.sort_unstable();
        if handlers.is_empty() {
            return Ok(HashSet::new());
        }
        let living: HashSet<RunId> = self.backend.living(&handlers).await?.into_iter().collect();
        Ok(handled.into_iter().filter(|(key, _)| living.contains(&key.id)).map(|(_, run)| run).collect())
    }
}
