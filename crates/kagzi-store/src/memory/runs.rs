//! Runs of the reference store.

use kagzi_model::{EventKind, Name, Payload, Run, RunId, RunKey, Timestamp};

use super::{MemoryBackend, key_of};
use crate::{DueKey, DueQuery, DueRun, FoundBusiness, Loaded, RunRows, StoreError};

impl RunRows for MemoryBackend {
    async fn load(&mut self, keys: &[RunKey]) -> Result<Loaded, StoreError> {
        let runs = keys.iter().filter_map(|key| self.working.aggregate(key.id)).collect();
        Ok(Loaded { runs, ..Loaded::default() })
    }

    async fn find_business(&mut self, ids: &[(Name, Name)]) -> Result<Vec<FoundBusiness>, StoreError> {
        let mut found = Vec::new();
        for (place, key) in ids.iter().enumerate() {
            let Some(id) = self.working.business.get(key) else { continue };
            let input = self.working.payload(*id, &EventKind::RunStarted);
            let input = input.unwrap_or_else(|| Payload::new(&b""[..]));
            found.push(FoundBusiness::of(place, *id, Ok(Some(input)), Ok(self.working.runs[id].clone()))?);
        }
        Ok(found)
    }

    async fn input(&mut self, key: &RunKey) -> Result<Option<Payload>, StoreError> {
        let there = self.working.runs.get(&key.id).is_some_and(|run| run.namespace == key.namespace);
        Ok(self.working.payload(key.id, &EventKind::RunStarted).filter(|_| there))
    }

    async fn due(&mut self, query: &DueQuery<'_>) -> Result<Vec<DueRun>, StoreError> {
        let mut found = Vec::new();
        for (key, wanted) in query.keys.iter().enumerate() {
            let mut due = self.working.waiting(&wanted.key, query.aside);
            due.retain(|(at, _)| *at <= query.now);
            found.extend(due.into_iter().take(wanted.len).map(|(at, run)| DueRun { at, run, key }));
        }
        found.sort_unstable();
        Ok(found)
    }

    async fn next_due(
        &mut self,
        keys: &[DueKey],
        aside: &[RunId],
    ) -> Result<Vec<Option<Timestamp>>, StoreError> {
        let next =
            |wanted: &DueKey| self.working.waiting(&wanted.key, aside).get(wanted.len).map(|(at, _)| *at);
        Ok(keys.iter().map(next).collect())
    }

    async fn sweep_due(
        &mut self,
        _: Timestamp,
        now: Timestamp,
        limit: usize,
        aside: &[RunId],
    ) -> Result<Vec<RunKey>, StoreError> {
        let mut due: Vec<_> = self
            .working
            .runs
            .values()
            .filter(|run| !aside.contains(&run.id))
            .filter_map(|run| run.sweep_at().map(|at| (at, key_of(run))))
            .filter(|(at, _)| *at <= now)
            .collect();
        due.sort_unstable();
        Ok(due.into_iter().take(limit).map(|(_, key)| key).collect())
    }

    async fn next_sweep(&mut self, _: Timestamp, aside: &[RunId]) -> Result<Option<Timestamp>, StoreError> {
        let runs = self.working.runs.values().filter(|run| !aside.contains(&run.id));
        Ok(runs.filter_map(Run::sweep_at).min())
    }

    async fn living(&mut self, keys: &[RunKey]) -> Result<Vec<RunId>, StoreError> {
        let lives = |key: &&RunKey| {
            self.working
                .runs
                .get(&key.id)
                .is_some_and(|run| run.namespace == key.namespace && !run.state.finished())
        };
        Ok(keys.iter().filter(lives).map(|key| key.id).collect())
    }
}
