//! Runs that are busy, kept in memory so that recording a step needs no read.

use crate::hash::HashMap;
use kagzi_model::{Aggregate, Payload, RunId};

/// Runs of one generation.
const GENERATION_LEN: usize = 8192;
/// What they may hold in memory, by estimate. A run that loops for weeks has megabytes of steps, and is still
/// worth keeping: loading it reads its whole history, on the thread that everybody waits for.
const GENERATION_BYTES: usize = 32 * 1024 * 1024;
/// A run without steps, and one step of it, by estimate.
const RUN_BYTES: usize = 1024;
const STEP_BYTES: usize = 320;
/// Inputs above this are read from the database when they are needed.
const INPUT_BYTES_MAX: usize = 2048;

/// What is known of a busy run.
#[derive(Debug, Clone)]
pub struct Entry {
    pub aggregate: Aggregate,
    /// The input, if it is small and came through here.
    pub input: Option<Payload>,
    /// What it was last counted with.
    bytes: usize,
}

impl Entry {
    /// The run has begun anew with this input.
    pub fn give_input(&mut self, input: Option<Payload>) {
        self.input = input.filter(|input| input.data.len() <= INPUT_BYTES_MAX);
    }
}

/// Runs that were written to in the same time.
#[derive(Debug, Default)]
struct Generation {
    runs: HashMap<RunId, Entry>,
    bytes: usize,
}

impl Generation {
    fn insert(&mut self, id: RunId, entry: Entry) {
        self.bytes += entry.bytes;
        self.bytes -= self.runs.insert(id, entry).map_or(0, |former| former.bytes);
    }

    fn remove(&mut self, id: RunId) -> Option<Entry> {
        let entry = self.runs.remove(&id)?;
        self.bytes -= entry.bytes;
        Some(entry)
    }

    fn clear(&mut self) {
        self.runs.clear();
        self.bytes = 0;
    }
}

/// A write-through cache, owned by the lane. It is dropped whole when a commit fails.
///
/// It has two generations: what is written to moves into the young one, and when that is full, what is left
/// of the old one is forgotten. So a run that is written to stays, however many others there are, and no
/// write looks at all of them.
#[derive(Debug, Default)]
pub struct Cache {
    young: Generation,
    old: Generation,
}

impl Cache {
    pub fn get(&self, id: RunId) -> Option<&Entry> {
        self.young.runs.get(&id).or_else(|| self.old.runs.get(&id))
    }

    pub fn get_mut(&mut self, id: RunId) -> Option<&mut Entry> {
        if let Some(entry) = self.old.remove(id) {
            self.young.insert(id, entry);
        }
        self.young.runs.get_mut(&id)
    }

    pub fn contains(&self, id: RunId) -> bool {
        self.get(id).is_some()
    }

    pub fn insert(&mut self, aggregate: Aggregate, input: Option<Payload>) {
        let id = aggregate.run.id;
        let input = input.filter(|input| input.data.len() <= INPUT_BYTES_MAX);
        let bytes = estimate(&aggregate);
        self.old.remove(id);
        self.young.insert(id, Entry { aggregate, input, bytes });
    }

    /// Forgets a run; it is loaded again when needed.
    pub fn remove(&mut self, id: RunId) -> Option<Entry> {
        self.young.remove(id).or_else(|| self.old.remove(id))
    }

    /// Forgets everything: after a failed commit memory may be ahead of the disk.
    pub fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }

    /// Forgets a run that is of no further use, and counts anew what another one has grown to.
    pub fn settle(&mut self, id: RunId) {
        let Some(entry) = self.young.runs.get_mut(&id) else { return };
        if entry.aggregate.run.state.finished() {
            self.young.remove(id);
            return;
        }
        let bytes = estimate(&entry.aggregate);
        self.young.bytes = self.young.bytes + bytes - std::mem::replace(&mut entry.bytes, bytes);
    }

    /// Forgets what was not written to for long, when there is too much. Between turns only: a turn relies on
    /// what it has loaded.
    pub fn make_room(&mut self) {
        if self.young.runs.len() >= GENERATION_LEN || self.young.bytes >= GENERATION_BYTES {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
    }
}

fn estimate(aggregate: &Aggregate) -> usize {
    RUN_BYTES + aggregate.steps.len() * STEP_BYTES
}

#[cfg(test)]
mod tests {
    use kagzi_model::{Command, RunOptions, StartRun, Timestamp, decide};
    use uuid::Uuid;

    use super::*;

    fn started(number: u128) -> Aggregate {
        let id = RunId(Uuid::from_u128(number));
        let start = Command::start(StartRun {
            namespace: "shop".into(),
            id,
            business_id: None,
            workflow_type: "charge".into(),
            task_queue: "orders".into(),
            input: Payload::new(&b"{}"[..]),
            deadline_at: None,
            options: RunOptions::default(),
            labels: Default::default(),
            signals: Vec::new(),
        });
        Aggregate::new(decide(Timestamp(1), None, None, &start).unwrap().run.unwrap(), 0)
    }

    #[test]
    fn a_run_that_is_written_to_stays_and_the_others_are_bounded() {
        let mut cache = Cache::default();
        let busy = RunId(Uuid::from_u128(0));
        cache.insert(started(0), None);

        for number in 1..=5 * GENERATION_LEN as u128 {
            cache.insert(started(number), None);
            if number % 1000 == 0 {
                assert!(cache.get_mut(busy).is_some(), "after {number}");
            }
            cache.make_room();
            assert!(cache.young.runs.len() + cache.old.runs.len() <= 2 * GENERATION_LEN);
        }

        assert!(!cache.contains(RunId(Uuid::from_u128(1))), "it was never written to");
    }

    #[test]
    fn a_long_run_stays_while_it_is_written_to_and_bytes_are_bounded() {
        let mut cache = Cache::default();
        let long = RunId(Uuid::from_u128(0));
        let mut aggregate = started(0);
        for n in 0..20_000 {
            let step = kagzi_model::EventKind::StepCompleted {
                step: format!("poll#{n}").into(),
                position: n,
                attempt: 1,
                elapsed_ms: 0,
            };
            aggregate.absorb(Timestamp(1), &step);
        }
        cache.insert(aggregate.clone(), None);

        for number in 1..=50 {
            let mut other = aggregate.clone();
            other.run.id = RunId(Uuid::from_u128(number));
            cache.insert(other, None);
            assert!(cache.get_mut(long).is_some(), "after {number}");
            cache.settle(long);
            cache.make_room();
            let most = 2 * GENERATION_BYTES + estimate(&aggregate) * 2;
            assert!(cache.young.bytes + cache.old.bytes <= most, "after {number}");
        }
    }

    #[test]
    fn a_run_is_in_one_generation() {
        let mut cache = Cache::default();
        for number in 0..GENERATION_LEN as u128 {
            cache.insert(started(number), None);
        }
        cache.make_room();

        // Loaded again while an older copy is there.
        cache.insert(started(7), Some(Payload::new(&b"new"[..])));

        let seven = RunId(Uuid::from_u128(7));
        assert!(cache.remove(seven).is_some_and(|entry| entry.input.is_some()));
        assert!(!cache.contains(seven));
    }
}
