//! Questions to people and the outbox of the reference store.

use async_trait::async_trait;
use kagzi_model::{
    Name, NounRow, RunKey, Timestamp,
    intervention::{Intervention, InterventionKey, InterventionState, Message, Notice, NoticeState},
};

use super::{MemoryBackend, MemoryReads, Tables, cut_page, write_changes};
use crate::{
    Cursor, DueQuestion, InterventionFilter, InterventionReads, InterventionRows, Page, PageRequest,
    PeopleSet, StoreError, TakeNotices,
};

impl InterventionRows for MemoryBackend {
    async fn load_intervention(&mut self, key: &InterventionKey) -> Result<Option<Intervention>, StoreError> {
        Ok(self.working.interventions.get(key).cloned())
    }

    async fn due_interventions(
        &mut self,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<DueQuestion>, StoreError> {
        let rows = self.working.interventions.values();
        let mut due: Vec<_> = rows.filter(|row| row.next_at().is_some_and(|at| at <= now)).collect();
        due.sort_by_key(|row| (row.next_at(), row.key.id));
        let key = |row: &&Intervention| (row.key.clone(), RunKey::new(row.key.namespace.clone(), row.run));
        Ok(due.iter().take(limit).map(key).collect())
    }

    async fn next_intervention(&mut self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.working.interventions.values().filter_map(Intervention::next_at).min())
    }

    async fn pending_of(&mut self, namespace: &Name, person: &Name, max: usize) -> Result<usize, StoreError> {
        Ok(self.working.of(namespace, person, InterventionState::Pending).take(max).count())
    }

    async fn queued_of(
        &mut self,
        namespace: &Name,
        person: &Name,
    ) -> Result<Option<InterventionKey>, StoreError> {
        let queued = self.working.of(namespace, person, InterventionState::Queued);
        Ok(queued.min_by_key(|row| row.key.id).map(|row| row.key.clone()))
    }

    async fn all_nouns(
        &mut self,
        namespace: &Name,
        kind: &str,
        limit: usize,
    ) -> Result<Vec<NounRow>, StoreError> {
        let nouns = self.working.nouns.values();
        let of_kind = |row: &&NounRow| row.key.namespace == *namespace && *row.key.kind == *kind;
        Ok(nouns.filter(of_kind).take(limit).cloned().collect())
    }

    async fn take_notices(
        &mut self,
        now: Timestamp,
        TakeNotices { channel, until, limit }: TakeNotices,
    ) -> Result<Vec<Notice>, StoreError> {
        let notices = &mut self.working.notices;
        let mut due: Vec<_> = notices
            .iter()
            .filter(|(_, notice)| notice.channel == channel)
            .filter_map(|(key, notice)| notice.next_at.filter(|at| *at <= now).map(|at| (at, key.clone())))
            .collect();
        due.sort_unstable();
        let mut taken = Vec::new();
        for (_, key) in due.into_iter().take(limit) {
            if let Some(notice) = notices.get_mut(&key) {
                notice.next_at = Some(until);
                taken.push(notice.clone());
            }
        }
        Ok(taken)
    }
}

impl Tables {
    fn of<'a>(
        &'a self,
        namespace: &'a Name,
        person: &'a Name,
        state: InterventionState,
    ) -> impl Iterator<Item = &'a Intervention> {
        self.interventions.values().filter(move |row| {
            row.key.namespace == *namespace && row.state == state && row.assignees.contains(person)
        })
    }

    pub(super) fn write_people(&mut self, set: PeopleSet) -> Result<(), StoreError> {
        write_changes(&mut self.interventions, set.questions)?;
        for key in set.silenced {
            let of_it = |notice: &&mut Notice| notice.question == key && notice.next_at.is_some();
            for notice in self.notices.values_mut().filter(of_it) {
                if notice.message != Message::NoLongerNeeded {
                    (notice.state, notice.next_at) = (NoticeState::Suppressed, None);
                }
            }
        }
        for notice in set.notices {
            let key = (notice.question.namespace.clone(), notice.id.clone());
            self.notices.entry(key).or_insert(notice);
        }
        for notice in set.settled {
            let key = (notice.question.namespace.clone(), notice.id.clone());
            if let Some(there) = self.notices.get_mut(&key).filter(|there| there.next_at.is_some()) {
                *there = notice;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl InterventionReads for MemoryReads {
    async fn intervention(&self, key: &InterventionKey) -> Result<Option<Intervention>, StoreError> {
        Ok(self.tables.read().interventions.get(key).cloned())
    }

    async fn interventions(
        &self,
        namespace: &Name,
        filter: &InterventionFilter,
        page: &PageRequest,
    ) -> Result<Page<Intervention>, StoreError> {
        let tables = self.tables.read();
        let rows = tables.interventions.values();
        let rows = rows.filter(|row| row.key.namespace == *namespace && filter.matches(row));
        let place = |row: &Intervention| Cursor { at: row.due_at(), id: row.key.id };
        Ok(cut_page(rows.cloned().collect(), page, true, place))
    }

    async fn notices(&self, key: &InterventionKey) -> Result<Vec<Notice>, StoreError> {
        let tables = self.tables.read();
        let mut notices: Vec<Notice> =
            tables.notices.values().filter(|notice| notice.question == *key).cloned().collect();
        notices.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(notices)
    }

    async fn notice_due_since(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.tables.read().notices.values().filter_map(|notice| notice.next_at).min())
    }
}
