//! The reference store: plain maps behind the same contract. It is what the others are compared with.

mod controls;
mod schedules;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use async_trait::async_trait;
use kagzi_model::{
    Aggregate, Entity, Event, EventKind, Gate, GateKey, Name, Namespace, Payload, Run, RunId, Timestamp,
    Worker, WorkerId, WorkerStatus,
    schedule::{Schedule, ScheduleKey},
};
use parking_lot::RwLock;

use crate::{
    Backend, Census, Changes, Clock, Cursor, Direction, DueCount, DueKey, DueQuery, DueRun, EventOutline,
    EventPiece, EventRequest, FoundBusiness, Lane, LaneOptions, Listed, Loaded, LoadedWorker, LoadedWorkers,
    Observer, Page, PageRequest, QueueKey, Reads, RetireQuery, RunFilter, RunKey, RunView, Store, StoreError,
    TOTAL_MAX, Total, WorkerFilter, WorkerView, WorkersQuery, WriteSet,
};

/// Rows as a database would hold them.
#[derive(Debug, Clone, Default)]
struct Tables {
    runs: BTreeMap<RunId, Run>,
    events: BTreeMap<(RunId, u64), Event>,
    business: HashMap<(Name, Name), RunId>,
    workers: BTreeMap<WorkerId, Worker>,
    schedules: BTreeMap<ScheduleKey, Schedule>,
    namespaces: BTreeMap<Name, Namespace>,
    gates: BTreeMap<GateKey, Gate>,
}

/// Makes in-memory stores.
pub struct MemoryStore;

impl MemoryStore {
    /// Opens an empty store on the current runtime.
    pub fn open(clock: Arc<dyn Clock>, observer: Arc<dyn Observer>) -> Store {
        let tables = Arc::new(RwLock::new(Tables::new(clock.now())));
        let backend = MemoryBackend {
            tables: tables.clone(),
            working: Tables::default(),
            #[cfg(test)]
            lose_answer: Arc::default(),
        };
        MemoryStore::serve(backend, clock, observer, tables)
    }

    /// The same, but the next commit after the switch is set happens and is answered with an error.
    #[cfg(test)]
    pub(crate) fn open_lossy(
        clock: Arc<dyn Clock>,
        observer: Arc<dyn Observer>,
        lose_answer: Arc<std::sync::atomic::AtomicBool>,
    ) -> Store {
        let tables = Arc::new(RwLock::new(Tables::new(clock.now())));
        let backend = MemoryBackend { tables: tables.clone(), working: Tables::default(), lose_answer };
        MemoryStore::serve(backend, clock, observer, tables)
    }

    fn serve(
        backend: MemoryBackend,
        clock: Arc<dyn Clock>,
        observer: Arc<dyn Observer>,
        tables: Arc<RwLock<Tables>>,
    ) -> Store {
        let (lane, handle) = Lane::new(backend, clock, observer, LaneOptions::default());
        tokio::spawn(lane.run());
        Store::new(handle, MemoryReads { tables }, "memory".into())
    }
}

/// The writing side: works on a copy that replaces the tables at the commit.
struct MemoryBackend {
    tables: Arc<RwLock<Tables>>,
    working: Tables,
    #[cfg(test)]
    lose_answer: Arc<std::sync::atomic::AtomicBool>,
}

impl Backend for MemoryBackend {
    async fn begin(&mut self) -> Result<(), StoreError> {
        self.working = self.tables.read().clone();
        Ok(())
    }

    async fn commit(&mut self) -> Result<(), StoreError> {
        *self.tables.write() = std::mem::take(&mut self.working);
        #[cfg(test)]
        if self.lose_answer.swap(false, std::sync::atomic::Ordering::SeqCst) {
            return Err(StoreError::Unavailable("the connection was lost".into()));
        }
        Ok(())
    }

    async fn rollback(&mut self) {
        self.working = Tables::default();
    }

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

    async fn handler_queue(&mut self, namespace: &Name) -> Result<Option<Name>, StoreError> {
        let handles = |worker: &&Worker| {
            let registration = &worker.registration;
            registration.namespace == *namespace && registration.handles_failures()
        };
        let newest = self
            .working
            .workers
            .values()
            .filter(handles)
            .max_by_key(|worker| (worker.registered_at, worker.id));
        Ok(newest.map(|worker| worker.registration.task_queue.clone()))
    }

    async fn load_workers(&mut self, query: &WorkersQuery<'_>) -> Result<LoadedWorkers, StoreError> {
        let ids = query.whole.iter().chain(query.known);
        let load = |id: &WorkerId| {
            let worker = self.working.workers.get(id)?.clone();
            let holds = self.working.leased_by(*id).into_iter().map(|key| key.id).collect();
            Some(LoadedWorker { worker, holds })
        };
        Ok(LoadedWorkers { workers: ids.filter_map(load).collect(), unreadable: Vec::new() })
    }

    async fn stand_by(&mut self, ids: &[WorkerId]) -> Result<LoadedWorkers, StoreError> {
        self.load_workers(&WorkersQuery { whole: ids, ..WorkersQuery::default() }).await
    }

    async fn leased_by(&mut self, id: WorkerId) -> Result<Vec<RunKey>, StoreError> {
        Ok(self.working.leased_by(id))
    }

    async fn stale_workers(&mut self, before: Timestamp, limit: usize) -> Result<Vec<WorkerId>, StoreError> {
        let stale = self
            .working
            .workers
            .values()
            .filter(|worker| worker.status != WorkerStatus::Offline && worker.heartbeat_at < before);
        let mut stale: Vec<_> = stale.map(|worker| (worker.heartbeat_at, worker.id)).collect();
        stale.sort_unstable();
        Ok(stale.into_iter().take(limit).map(|(_, id)| id).collect())
    }

    async fn write(&mut self, set: WriteSet) -> Result<(), StoreError> {
        let broken = |what: &str| Err(StoreError::Duplicate(what.to_owned()));
        let tables = &mut self.working;
        for key in set.unnamed {
            if let Some(run) = tables.runs.get_mut(&key.id) {
                run.business_id = None;
            }
            tables.business.retain(|_, named| *named != key.id);
        }
        for run in set.inserted {
            let key = run.business_id.clone().map(|id| (run.namespace.clone(), id));
            let taken = key.is_some_and(|key| tables.business.insert(key, run.id).is_some());
            if taken || tables.runs.contains_key(&run.id) {
                return broken("a run with this id");
            }
            tables.runs.insert(run.id, run);
        }
        for run in set.updated {
            tables.runs.insert(run.id, run);
        }
        for row in set.events {
            if tables.events.insert((row.run, row.event.seq), row.event).is_some() {
                return broken("an event with this number");
            }
        }
        write_changes(&mut tables.workers, set.workers)?;
        write_changes(&mut tables.schedules, set.schedules)?;
        write_changes(&mut tables.namespaces, set.namespaces)?;
        write_changes(&mut tables.gates, set.gates)
    }
}

/// Writes changed rows of one kind; each replaces the row of the version it was made from.
fn write_changes<E: Entity>(table: &mut BTreeMap<E::Key, E>, changes: Changes<E>) -> Result<(), StoreError> {
    let moved = || StoreError::Conflict("a row has another version than memory says".into());
    for (key, from) in changes.deleted {
        table.remove(&key).filter(|there| there.version() == from).ok_or_else(moved)?;
    }
    for row in changes.implicit {
        table.entry(row.key()).or_insert(row);
    }
    for row in changes.inserted {
        if table.insert(row.key(), row).is_some() {
            return Err(StoreError::Conflict("a new row exists already".into()));
        }
    }
    for (from, row) in changes.updated {
        table.insert(row.key(), row).filter(|there| there.version() == from).ok_or_else(moved)?;
    }
    Ok(())
}

impl Tables {
    fn aggregate(&self, id: RunId) -> Option<Aggregate> {
        let run = self.runs.get(&id)?.clone();
        let mut aggregate = Aggregate::new(run, 0);
        for event in self.events_of(id) {
            aggregate.absorb(event.at, &event.kind);
            aggregate.weigh(event.payload.as_ref().map_or(0, |payload| payload.data.len() as u64));
        }
        Some(aggregate)
    }

    fn events_of(&self, id: RunId) -> impl Iterator<Item = &Event> {
        self.events.range((id, 0)..=(id, u64::MAX)).map(|(_, event)| event)
    }

    /// Nothing when the run is not of the namespace.
    fn events_in(&self, namespace: &Name, id: RunId) -> impl Iterator<Item = &Event> {
        let there = self.runs.get(&id).is_some_and(|row| row.namespace == *namespace);
        self.events_of(id).filter(move |_| there)
    }

    fn payload(&self, id: RunId, kind: &EventKind) -> Option<Payload> {
        self.events_of(id).find(|event| event.kind == *kind).and_then(|event| event.payload.clone())
    }

    /// Claimable runs of a key, earliest first.
    fn waiting(&self, key: &QueueKey, aside: &[RunId]) -> Vec<(Timestamp, RunId)> {
        let mut waiting: Vec<_> = self
            .runs
            .values()
            .filter(|run| QueueKey::of(run) == *key && !aside.contains(&run.id))
            .filter_map(|run| run.due_at().map(|at| (at, run.id)))
            .collect();
        waiting.sort_unstable();
        waiting
    }

    fn matching<'a>(&'a self, namespace: &'a Name, filter: &'a RunFilter) -> impl Iterator<Item = &'a Run> {
        self.runs.values().filter(move |run| run.namespace == *namespace && filter.matches(run))
    }

    fn leased_by(&self, id: WorkerId) -> Vec<RunKey> {
        let held = |run: &&Run| run.lease().is_some_and(|lease| lease.worker == id);
        self.runs.values().filter(held).map(key_of).collect()
    }
}

fn key_of(run: &Run) -> RunKey {
    RunKey { id: run.id, namespace: run.namespace.clone() }
}

/// The reading side.
pub struct MemoryReads {
    tables: Arc<RwLock<Tables>>,
}

#[async_trait]
impl Reads for MemoryReads {
    async fn run(&self, namespace: &Name, id: RunId) -> Result<Option<RunView>, StoreError> {
        let tables = self.tables.read();
        let run = tables.runs.get(&id).filter(|run| run.namespace == *namespace).cloned();
        Ok(run.map(|run| RunView {
            run,
            input: tables.payload(id, &EventKind::RunStarted),
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

    async fn ping(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// One page of `rows`, newest first unless `ascending`.
fn cut_page<T>(
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
