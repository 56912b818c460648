//! Retention of the reference store.

use kagzi_model::{Name, Run, RunKey, Timestamp};

use super::{MemoryBackend, Tables, key_of};
use crate::{RetentionRows, RetireQuery, StoreError};

impl RetentionRows for MemoryBackend {
    async fn retirable(&mut self, query: &RetireQuery<'_>) -> Result<Vec<(RunKey, Timestamp)>, StoreError> {
        let own = |name: &Name| self.working.namespaces.get(name).and_then(|row| row.retention_ms);
        let past = |run: &&Run| {
            let until = query.until(own(&run.namespace));
            run.namespace > *query.after
                && run.finished_at.is_some_and(|at| until.is_some_and(|until| at <= until))
        };
        let mut found: Vec<&Run> = self.working.runs.values().filter(past).collect();
        found.sort_by(|a, b| (&a.namespace, a.finished_at, a.id).cmp(&(&b.namespace, b.finished_at, b.id)));
        Ok(found.into_iter().take(query.limit).map(|run| (key_of(run), run.created_at)).collect())
    }

    async fn retire(&mut self, keys: &[RunKey]) -> Result<(), StoreError> {
        for RunKey { id: run, .. } in keys {
            self.working.runs.remove(run);
            self.working.business.retain(|_, named| named != run);
            let asked = &mut self.working.interventions;
            let gone: Vec<_> =
                asked.values().filter(|row| row.run == *run).map(|row| row.key.clone()).collect();
            for key in gone {
                asked.remove(&key);
                self.working.notices.retain(|_, notice| notice.question != key);
            }
        }
        Ok(())
    }

    async fn purge(&mut self, limit: usize) -> Result<usize, StoreError> {
        let Tables { runs, events, .. } = &mut self.working;
        let gone = events.keys().filter(|(run, _)| !runs.contains_key(run)).take(limit);
        let gone: Vec<_> = gone.copied().collect();
        gone.iter().for_each(|key| drop(events.remove(key)));
        Ok(gone.len())
    }
}
