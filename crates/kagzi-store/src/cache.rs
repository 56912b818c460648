//! Runs that are busy, kept in memory so that recording a step needs no read.

use crate::hash::HashMap;
use kagzi_model::{Aggregate, Payload, RunId};

/// Runs of one generation. At about 1 KiB each the two stay below 20 MiB.
const GENERATION_LEN: usize = 8192;
/// Inputs above this are read from the database when they are needed.
const INPUT_BYTES_MAX: usize = 2048;
/// A run with more steps than this is reloaded instead of kept once its lease ends.
const STEPS_MAX: usize = 64;

/// What is known of a busy run.
#[derive(Debug, Clone)]
pub struct Entry {
    pub aggregate: Aggregate,
    /// The input, if it is small and came through here.
    pub input: Option<Payload>,
}

/// A write-through cache, owned by the lane. It is dropped whole when a commit fails.
///
/// It has two generations: what is written to moves into the young one, and when that is full, what is left of the old one
/// is forgotten. So a run that is written to stays, however many others there are, and no write looks at all of them.
#[derive(Debug, Default)]
pub struct Cache {
    young: HashMap<RunId, Entry>,
    old: HashMap<RunId, Entry>,
}

impl Cache {
    pub fn get(&self, id: RunId) -> Option<&Entry> {
        self.young.get(&id).or_else(|| self.old.get(&id))
    }

    pub fn get_mut(&mut self, id: RunId) -> Option<&mut Entry> {
        if let Some(entry) = self.old.remove(&id) {
            self.young.insert(id, entry);
        }
        self.young.get_mut(&id)
    }

    pub fn contains(&self, id: RunId) -> bool {
        self.get(id).is_some()
    }

    pub fn insert(&mut self, aggregate: Aggregate, input: Option<Payload>) {
        let id = aggregate.run.id;
        let input = input.filter(|input| input.data.len() <= INPUT_BYTES_MAX);
        self.old.remove(&id);
        self.young.insert(id, Entry { aggregate, input });
    }

    /// Forgets a run; it is loaded again when needed.
    pub fn remove(&mut self, id: RunId) -> Option<Entry> {
        self.young.remove(&id).or_else(|| self.old.remove(&id))
    }

    /// Forgets everything: after a failed commit memory may be ahead of the disk.
    pub fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }

    /// Forgets a run that is of no further use.
    pub fn settle(&mut self, id: RunId) {
        let Some(entry) = self.get(id) else { return };
        let run = &entry.aggregate.run;
        let asleep = run.lease().is_none() && entry.aggregate.steps.len() > STEPS_MAX;
        if run.state.finished() || asleep {
            self.remove(id);
        }
    }

    /// Forgets what was not written to for long, when there is too much. Between turns only: a turn relies on what it has loaded.
    pub fn make_room(&mut self) {
        if self.young.len() >= GENERATION_LEN {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use kagzi_model::{Command, RunOptions, StartRun, Timestamp, decide};
    use uuid::Uuid;

    use super::*;

    fn started(number: u128) -> Aggregate {
        let id = RunId(Uuid::from_u128(number));
        let start = Command::Start(Box::new(StartRun {
            namespace: "shop".into(),
            id,
            business_id: id.to_string().into(),
            workflow_type: "charge".into(),
            task_queue: "orders".into(),
            input: Payload::new(&b"{}"[..]),
            deadline_at: None,
            options: RunOptions::default(),
            labels: Default::default(),
        }));
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
            assert!(cache.young.len() + cache.old.len() <= 2 * GENERATION_LEN);
        }

        assert!(!cache.contains(RunId(Uuid::from_u128(1))), "it was never written to");
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
