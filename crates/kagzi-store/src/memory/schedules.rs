//! Schedules of the reference store.

use async_trait::async_trait;
use kagzi_model::{
    Name, Timestamp,
    schedule::{Schedule, ScheduleKey},
};

use uuid::Uuid;

use super::{MemoryBackend, MemoryReads, cut_page};
use crate::{
    Cursor, DueSchedule, Page, PageRequest, ScheduleFilter, ScheduleReads, ScheduleRows, StoreError,
};

impl ScheduleRows for MemoryBackend {
    async fn load_schedule(&mut self, key: &ScheduleKey) -> Result<Option<Schedule>, StoreError> {
        Ok(self.working.schedules.get(key).cloned())
    }

    async fn load_schedules(&mut self, keys: &[ScheduleKey]) -> Result<Vec<Schedule>, StoreError> {
        let mut loaded = Vec::with_capacity(keys.len());
        for key in keys {
            loaded.extend(self.load_schedule(key).await?);
        }
        Ok(loaded)
    }

    async fn claim_schedule(&mut self, key: &ScheduleKey) -> Result<Option<Schedule>, StoreError> {
        self.load_schedule(key).await
    }

    async fn claim_due_schedules(
        &mut self,
        now: Timestamp,
        limit: usize,
        aside: &[Uuid],
    ) -> Result<Vec<DueSchedule>, StoreError> {
        let mut due: Vec<&Schedule> = self
            .working
            .schedules
            .values()
            .filter(|row| row.state.next_at.is_some_and(|at| at <= now) && !aside.contains(&row.uid))
            .collect();
        due.sort_by_key(|row| (row.state.next_at, row.uid));
        Ok(due.into_iter().take(limit).map(|row| DueSchedule::Read(Box::new(row.clone()))).collect())
    }

    async fn next_schedule(&mut self, aside: &[Uuid]) -> Result<Option<Timestamp>, StoreError> {
        let rows = self.working.schedules.values().filter(|row| !aside.contains(&row.uid));
        Ok(rows.filter_map(|row| row.state.next_at).min())
    }
}

#[async_trait]
impl ScheduleReads for MemoryReads {
    async fn schedule_by_id(&self, namespace: &Name, id: &Name) -> Result<Option<Schedule>, StoreError> {
        let key = ScheduleKey { namespace: namespace.clone(), id: id.clone() };
        Ok(self.tables.read().schedules.get(&key).cloned())
    }

    async fn schedules(
        &self,
        namespace: &Name,
        filter: &ScheduleFilter,
        page: &PageRequest,
    ) -> Result<Page<Schedule>, StoreError> {
        let tables = self.tables.read();
        let rows = tables.schedules.values().filter(|row| {
            row.namespace == *namespace
                && filter.workflow_type.as_ref().is_none_or(|name| row.plan.workflow_type == *name)
                && filter.paused.is_none_or(|paused| row.state.paused.is_some() == paused)
        });
        Ok(cut_page(rows.cloned().collect(), page, false, |row| Cursor { at: row.created_at, id: row.uid }))
    }
}
