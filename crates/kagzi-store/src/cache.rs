//! Runs that are busy, kept in memory so that recording a step needs no read.

use crate::hash::HashMap;
use kagzi_model::{Aggregate, Payload, RunId};

/// Most runs kept. At about 1 KiB each this stays below 10 MiB.
const ENTRIES_MAX: usize = 8192;
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
#[derive(Debug, Default)]
pub struct Cache {
    entries: HashMap<RunId, Entry>,
}

impl Cache {
    pub fn get(&self, id: RunId) -> Option<&Entry> {
        self.entries.get(&id)
    }

    pub fn get_mut(&mut self, id: RunId) -> Option<&mut Entry> {
        self.entries.get_mut(&id)
    }

    pub fn contains(&self, id: RunId) -> bool {
        self.entries.contains_key(&id)
    }

    pub fn insert(&mut self, aggregate: Aggregate, input: Option<Payload>) {
        let input = input.filter(|input| input.data.len() <= INPUT_BYTES_MAX);
        self.entries.insert(aggregate.run.id, Entry { aggregate, input });
    }

    /// Forgets a run; it is loaded again when needed.
    pub fn remove(&mut self, id: RunId) -> Option<Entry> {
        self.entries.remove(&id)
    }

    /// Forgets everything: after a failed commit memory may be ahead of the disk.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Forgets a run that is of no further use, and makes room when there are too many.
    pub fn settle(&mut self, id: RunId) {
        let Some(entry) = self.entries.get(&id) else { return };
        let run = &entry.aggregate.run;
        let asleep = run.lease().is_none() && entry.aggregate.steps.len() > STEPS_MAX;
        if run.state.finished() || asleep {
            self.entries.remove(&id);
        }
        if self.entries.len() > ENTRIES_MAX {
            // Leased runs are written to next; the others can wait for a reload.
            self.entries.retain(|_, entry| entry.aggregate.run.lease().is_some());
        }
        if self.entries.len() > ENTRIES_MAX * 2 {
            self.entries.clear();
        }
    }
}
