//! The reference store: plain maps behind the same contract. It is what the others are compared with.

mod controls;
mod interventions;
mod nouns;
mod reads;
mod retention;
mod runs;
mod schedules;
mod topics;
mod workers;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use kagzi_model::{
    Aggregate, Entity, Event, EventKind, Gate, GateKey, Name, Namespace, NounKey, NounRow, Payload,
    PublishedEvent, Run, RunId, Timestamp, TopicKey, Worker, WorkerId,
    intervention::{Intervention, InterventionKey, Notice},
    schedule::{Schedule, ScheduleKey},
};
use parking_lot::RwLock;

use self::reads::cut_page;
use crate::{
    Backend, Changes, Clock, Lane, LaneOptions, Observer, QueueKey, RunFilter, RunKey, Store, StoreError,
    SubscriptionRow, WriteSet,
};

pub use reads::MemoryReads;

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
    nouns: BTreeMap<NounKey, NounRow>,
    published: BTreeMap<(TopicKey, Timestamp), PublishedEvent>,
    subscriptions: BTreeSet<SubscriptionRow>,
    interventions: BTreeMap<InterventionKey, Intervention>,
    notices: BTreeMap<(Name, Name), Notice>,
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
            faults: Arc::default(),
        };
        MemoryStore::serve(backend, clock, observer, tables)
    }

    /// The same, with commits that can be made to fail.
    #[cfg(test)]
    pub(crate) fn open_lossy(
        clock: Arc<dyn Clock>,
        observer: Arc<dyn Observer>,
        faults: Arc<Faults>,
    ) -> Store {
        let tables = Arc::new(RwLock::new(Tables::new(clock.now())));
        let backend = MemoryBackend { tables: tables.clone(), working: Tables::default(), faults };
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
    faults: Arc<Faults>,
}

/// What becomes of the next commit, once.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct Faults {
    /// It happens, and is answered with an error.
    pub lose_answer: std::sync::atomic::AtomicBool,
    /// It does not happen.
    pub refuse: std::sync::atomic::AtomicBool,
}

impl Backend for MemoryBackend {
    async fn begin(&mut self) -> Result<(), StoreError> {
        self.working = self.tables.read().clone();
        Ok(())
    }

    async fn commit(&mut self) -> Result<(), StoreError> {
        #[cfg(test)]
        if self.faults.refuse.swap(false, std::sync::atomic::Ordering::SeqCst) {
            return Err(StoreError::Unavailable("the disk is away".into()));
        }
        *self.tables.write() = std::mem::take(&mut self.working);
        #[cfg(test)]
        if self.faults.lose_answer.swap(false, std::sync::atomic::Ordering::SeqCst) {
            return Err(StoreError::Unavailable("the connection was lost".into()));
        }
        Ok(())
    }

    async fn rollback(&mut self) {
        self.working = Tables::default();
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
        for continued in set.continued {
            let own = (continued.run.id, 0)..=(continued.run.id, u64::MAX);
            let goes = |seq: &u64| continued.drops(&(*seq..*seq + 1));
            let gone: Vec<_> = tables.events.range(own).map(|(key, _)| *key).collect();
            gone.iter().filter(|(_, seq)| goes(seq)).for_each(|key| drop(tables.events.remove(key)));
        }
        for row in set.events {
            if tables.events.insert((row.run, row.event.seq), row.event).is_some() {
                return broken("an event with this number");
            }
        }
        for row in set.unsubscribed {
            tables.subscriptions.remove(&row);
        }
        tables.subscriptions.extend(set.subscribed);
        write_changes(&mut tables.workers, set.workers)?;
        write_changes(&mut tables.schedules, set.schedules)?;
        write_changes(&mut tables.namespaces, set.namespaces)?;
        write_changes(&mut tables.gates, set.gates)?;
        write_changes(&mut tables.nouns, set.nouns)?;
        set.people.map_or(Ok(()), |people| tables.write_people(*people))
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
        let first_seq = run.first_seq;
        let mut aggregate = Aggregate::before_history(run);
        for event in self.events_of(id).filter(|event| event.seq >= first_seq) {
            aggregate.absorb(event.at, &event.kind);
            aggregate
                .weigh(&event.kind, event.payload.as_ref().map_or(0, |payload| payload.data.len() as u64));
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

    /// The input of the living generation.
    fn input(&self, id: RunId) -> Option<Payload> {
        let first_seq = self.runs.get(&id)?.first_seq;
        self.events.get(&(id, first_seq))?.payload.clone()
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
