//! Reading the reference store.

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use kagzi_model::{Event, EventKind, Name, Payload, Run, RunId, Status, Timestamp, WorkerId};
use parking_lot::RwLock;

use super::Tables;
use crate::{
    Census, Cursor, Direction, DueCount, EventOutline, EventPiece, EventRequest, Listed, Page, PageRequest,
    Reads, RunFilter, RunView, StoreError, TOTAL_MAX, Total, WaitCount, WorkerFilter, WorkerView,
};

/// The reading side.
pub struct MemoryReads {
    pub(super) tables: Arc<RwLock<Tables>>,
}

#[async_trait]
impl Reads for MemoryReads {
    async fn run(&self, namespace: &Name, id: RunId) -> Result<Option<RunView>, StoreError> {
        let tables = self.tables.read();
        let run = tables.runs.get(&id).filter(|run| run.namespace == *namespace).cloned();
        Ok(run.map(|run| RunView {
            run,
            input: tables.input(id),
            output: tables.payload(id, &EventKind::RunCompleted),
        }))
    }

    async fn living(&self, runs: &[(Name, RunId)]) -> Result<Vec<RunId>, StoreError> {
        let tables = self.tables.read();
        let lives = |(namespace, id): &&(Name, RunId)| {
            tables.runs.get(id).is_some_and(|run| run.namespace == *namespace && !run.state.finished())
        };
        Ok(runs.iter().filter(lives).map(|(_, id)| *id).collect())
    }

    async fn run_by_business(
        &self,
        namespace: &Name,
        business_id: &Name,
    ) -> Result<Option<RunId>, StoreError> {
        Ok(self.tables.read().business.get(&(namespace.clone(), business_id.clone())).copied())
    }

    async fn runs_by_prefix(&self, namespace: &Name, digits: &str) -> Result<Vec<RunId>, StoreError> {
        let tables = self.tables.read();
        let found = tables.runs.values().filter(|run| run.namespace == *namespace).map(|run| run.id);
        Ok(found.filter(|id| id.0.simple().to_string().starts_with(digits)).take(2).collect())
    }

    async fn runs(
        &self,
        namespace: &Name,
        filter: &RunFilter,
        page: &PageRequest,
    ) -> Result<Page<Run>, StoreError> {
        let tables = self.tables.read();
        let rows: Vec<Run> = tables.matching(namespace, filter).cloned().collect();
        let cursor = |run: &Run| filter.order.cursor(run).expect("only runs with a place in the order match");
        Ok(cut_page(rows, page, filter.order.ascending, cursor))
    }

    async fn count_runs(&self, namespace: &Name, filter: &RunFilter) -> Result<Total, StoreError> {
        let tables = self.tables.read();
        Ok(Total::of(tables.matching(namespace, filter).take(TOTAL_MAX as usize + 1).count() as u64))
    }

    async fn events(
        &self,
        namespace: &Name,
        run: RunId,
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        let tables = self.tables.read();
        Ok(tables
            .events_in(namespace, run)
            .filter(|event| event.seq > after_seq)
            .take(limit)
            .cloned()
            .collect())
    }

    async fn history(
        &self,
        namespace: &Name,
        run: RunId,
        request: &EventRequest,
    ) -> Result<EventPiece, StoreError> {
        let tables = self.tables.read();
        let mut events: Vec<&Event> = tables.events_in(namespace, run).collect();
        if !request.upwards {
            events.reverse();
        }
        let beyond = |event: &&&Event| match (request.beyond, request.upwards) {
            (None, _) => true,
            (Some(seq), true) => event.seq > seq,
            (Some(seq), false) => event.seq < seq,
        };
        let wanted = events.iter().filter(beyond).filter(|event| request.filter.matches(event));
        Ok(EventPiece::take(request, wanted.map(|event| (*event).clone())))
    }

    async fn outline(
        &self,
        namespace: &Name,
        run: RunId,
        after_seq: u64,
        limit: usize,
    ) -> Result<Vec<EventOutline>, StoreError> {
        let tables = self.tables.read();
        let events = tables.events_in(namespace, run).filter(|event| event.seq > after_seq).take(limit);
        Ok(events
            .map(|event| EventOutline {
                payload_bytes: event.payload.as_ref().map(|payload| payload.data.len() as u64),
                event: Event { payload: None, ..event.clone() },
            })
            .collect())
    }

    async fn payloads(
        &self,
        namespace: &Name,
        run: RunId,
        seqs: &[u64],
    ) -> Result<Vec<(u64, Payload)>, StoreError> {
        let tables = self.tables.read();
        let wanted = tables.events_in(namespace, run).filter(|event| seqs.contains(&event.seq));
        Ok(wanted.filter_map(|event| Some((event.seq, event.payload.clone()?))).collect())
    }

    async fn worker_by_id(&self, namespace: &Name, id: WorkerId) -> Result<Option<WorkerView>, StoreError> {
        let tables = self.tables.read();
        let worker = tables.workers.get(&id).filter(|worker| worker.registration.namespace == *namespace);
        Ok(worker
            .map(|worker| WorkerView { worker: worker.clone(), active: tables.leased_by(id).len() as u32 }))
    }

    async fn workers_by_prefix(&self, namespace: &Name, digits: &str) -> Result<Vec<WorkerId>, StoreError> {
        let tables = self.tables.read();
        let found = tables.workers.values().filter(|worker| worker.registration.namespace == *namespace);
        Ok(found
            .map(|worker| worker.id)
            .filter(|id| id.0.simple().to_string().starts_with(digits))
            .take(2)
            .collect())
    }

    async fn workers(
        &self,
        namespace: &Name,
        filter: &WorkerFilter,
        page: &PageRequest,
    ) -> Result<(Page<WorkerView>, Total), StoreError> {
        let tables = self.tables.read();
        let rows: Vec<_> = tables
            .workers
            .values()
            .filter(|worker| {
                worker.registration.namespace == *namespace
                    && filter.status.is_none_or(|status| worker.status == status)
                    && filter.task_queue.as_ref().is_none_or(|name| worker.registration.task_queue == *name)
            })
            .map(|worker| WorkerView {
                worker: worker.clone(),
                active: tables.leased_by(worker.id).len() as u32,
            })
            .collect();
        let total = Total::of(rows.len() as u64);
        let cursor = |view: &WorkerView| Cursor { at: view.worker.registered_at, id: view.worker.id.0 };
        Ok((cut_page(rows, page, false, cursor), total))
    }

    async fn census(&self, now: Timestamp) -> Result<Census, StoreError> {
        let tables = self.tables.read();
        let mut due: BTreeMap<(Name, Name), DueCount> = BTreeMap::new();
        let mut leased: BTreeMap<(Name, Name), u64> = BTreeMap::new();
        for run in tables.runs.values() {
            let key = (run.namespace.clone(), run.task_queue.clone());
            if run.lease().is_some() {
                *leased.entry(key.clone()).or_default() += 1;
            }
            let Some(at) = run.due_at() else { continue };
            let count = due.entry(key).or_insert_with(|| DueCount {
                namespace: run.namespace.clone(),
                task_queue: run.task_queue.clone(),
                ready: 0,
                total: 0,
                earliest: at,
            });
            count.ready += u64::from(at <= now);
            count.total += 1;
            count.earliest = count.earliest.min(at);
        }
        let mut workers: BTreeMap<(Name, i64), u64> = BTreeMap::new();
        for worker in tables.workers.values() {
            let key = (worker.registration.namespace.clone(), worker.status as i64);
            *workers.entry(key).or_default() += 1;
        }
        Census::of(
            due.into_values().collect(),
            leased.into_iter().map(|((namespace, queue), n)| (namespace, queue, n)).collect(),
            workers.into_iter().map(|((namespace, status), n)| (namespace, status, n)).collect(),
        )
    }

    async fn waits(&self) -> Result<Vec<WaitCount>, StoreError> {
        let tables = self.tables.read();
        let mut counted: BTreeMap<(Name, Name), u64> = BTreeMap::new();
        for run in tables.runs.values().filter(|run| run.state.status() == Status::Sleeping) {
            let Some(reason) = run.state.reason() else { continue };
            *counted.entry((run.namespace.clone(), Name::from(reason.name()))).or_default() += 1;
        }
        let count = |((namespace, reason), count)| WaitCount { namespace, reason, count };
        Ok(counted.into_iter().map(count).collect())
    }

    async fn ping(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// One page of `rows`, newest first unless `ascending`.
pub(super) fn cut_page<T>(
    mut rows: Vec<T>,
    page: &PageRequest,
    ascending: bool,
    cursor: impl Fn(&T) -> Cursor,
) -> Page<T> {
    let upwards = ascending == (page.direction == Direction::Next);
    let total = rows.len();
    if let Some(from) = page.from {
        rows.retain(|row| if upwards { cursor(row) > from } else { cursor(row) < from });
    }
    let other_side = page.from.is_some() && rows.len() < total;
    match upwards {
        true => rows.sort_by_key(&cursor),
        false => rows.sort_by_key(|row| std::cmp::Reverse(cursor(row))),
    }
    rows.truncate(page.limit + 1);
    Page::from_probe(rows.into_iter().map(Listed::Row).collect(), page, other_side)
}
