//! The recorded steps of a run, and what speaks for it that the code has changed.
//!
//! A call finds its entry by its path. That a call comes at another position than the record says is noted
//! and no more: it is told as the reason when a replay cannot go on, because the function does not call what
//! is recorded next.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use kagzi_proto::v1::{JournalEntry, StepRef, StepStatus};

use crate::run::path::scope_of;
use crate::run::scope::{Inside, is_scope};
use crate::run::turns::Heard;

/// Recorded steps that the code has not called yet.
pub(crate) struct Journal {
    /// All that is recorded, in the order in which it came. What is called is taken out.
    entries: Vec<Recorded>,
    /// Where each lies that was not called.
    uncalled: HashMap<Arc<str>, usize>,
    /// How many have ended: the function will be told of so many.
    told_len: u32,
    /// Scope, then position, to path. Kept whole: a position is compared even after its step was called.
    positions: HashMap<String, HashMap<u32, Arc<str>>>,
    /// The first call that was not as recorded.
    evidence: Option<String>,
}

/// What is recorded of one step.
#[derive(Default)]
pub(crate) struct Recorded {
    pub(crate) entry: JournalEntry,
    /// Its place among all that the function was told of, from 1; 0 = it has not ended.
    pub(crate) place: u32,
    /// What the function hears with it: one end and its bytes, and for a scope all that was heard inside it.
    pub(crate) weight: Heard,
}

impl Journal {
    #[cfg(test)]
    pub(crate) fn new(recorded: Vec<JournalEntry>) -> Journal {
        let weights = weights(&recorded);
        Journal::weighed(recorded, weights)
    }

    /// With what the entries weighed before they were decoded.
    pub(crate) fn weighed(recorded: Vec<JournalEntry>, weights: Vec<u64>) -> Journal {
        let mut journal = Journal {
            entries: Vec::new(),
            uncalled: HashMap::new(),
            told_len: 0,
            positions: HashMap::new(),
            evidence: None,
        };
        if recorded.is_empty() {
            return journal;
        }
        journal.uncalled.reserve(recorded.len());
        journal.entries.reserve_exact(recorded.len());
        let mut ended: Vec<(u32, usize)> = Vec::new();
        let mut elsewhere = HashSet::new();
        for (entry, bytes) in recorded.into_iter().zip(weights) {
            let (path, position) = match &entry.step {
                Some(step) => (Arc::from(step.path.as_str()), step.position),
                None => (Arc::from(""), 0),
            };
            let mut weight = Heard::one(bytes);
            if is_scope(&path) {
                let inside = Inside::of(&entry);
                weight.hear(inside.heard());
                elsewhere.extend(inside.own);
            }
            journal.record_position(&path, position);
            let at = journal.entries.len();
            if has_ended(&entry) {
                ended.push((entry.order, at));
            }
            journal.uncalled.insert(path, at);
            journal.entries.push(Recorded { entry, place: 0, weight });
        }
        // No replay calls what was called in a scope that is recorded as one.
        let left_out: HashSet<usize> =
            elsewhere.iter().filter_map(|path: &String| journal.uncalled.remove(path.as_str())).collect();
        if !left_out.is_empty() {
            ended.retain(|(_, at)| !left_out.contains(at));
        }
        // Stable: a server that does not say the order lists them in the order in which they were recorded.
        ended.sort_by_key(|(order, _)| *order);
        for (place, (_, at)) in (1..).zip(&ended) {
            journal.entries[*at].place = place;
        }
        journal.told_len = u32::try_from(ended.len()).unwrap_or(u32::MAX);
        journal
    }

    fn record_position(&mut self, path: &Arc<str>, position: u32) {
        let scope = scope_of(path);
        match self.positions.get_mut(scope) {
            Some(positions) => drop(positions.insert(position, Arc::clone(path))),
            None => {
                self.positions.insert(scope.to_owned(), HashMap::from([(position, Arc::clone(path))]));
            }
        }
    }

    /// How many recorded ends the function will be told of.
    pub(crate) fn told_len(&self) -> u32 {
        self.told_len
    }

    /// What was recorded for the step that is being called.
    pub(crate) fn take(&mut self, called: &StepRef) -> Option<Recorded> {
        if self.positions.is_empty() {
            return None;
        }
        let StepRef { path, position } = called;
        let recorded_here = self.positions.get(scope_of(path)).and_then(|scope| scope.get(position));
        let mismatch = recorded_here
            .filter(|recorded| ***recorded != **path)
            .map(|recorded| format!("recorded {recorded} at position {position}, got {path}"));
        let found = self.uncalled.remove(path.as_str()).map(|at| std::mem::take(&mut self.entries[at]));
        let mismatch = mismatch.or_else(|| {
            let recorded_at = found.as_ref()?.entry.step.as_ref()?.position;
            (recorded_at != *position)
                .then(|| format!("recorded {path} at position {recorded_at}, got it at position {position}"))
        });
        self.evidence = self.evidence.take().or(mismatch);
        found
    }

    /// Everything that is recorded was called.
    pub(crate) fn is_called(&self) -> bool {
        self.uncalled.is_empty()
    }

    /// What is recorded at this place and was not called; 0 = the first that was not called.
    pub(crate) fn at(&self, place: u32) -> String {
        let here = self.uncalled.iter().find(|(_, at)| place > 0 && self.entries[**at].place == place);
        let path = here.map(|(path, _)| path).or_else(|| self.uncalled.keys().min());
        path.map(ToString::to_string).unwrap_or_default()
    }

    pub(crate) fn evidence(&self) -> Option<String> {
        self.evidence.clone()
    }

    /// What the code should have called before it ended: the first by path, so that the message is stable.
    pub(crate) fn leftover(&self) -> Option<String> {
        let path = self.uncalled.keys().min()?;
        let without = || format!("recorded {path}, but the workflow ended without it");
        Some(self.evidence.clone().unwrap_or_else(without))
    }
}

/// What the results of these weigh.
pub(crate) fn weights(recorded: &[JournalEntry]) -> Vec<u64> {
    recorded.iter().map(|entry| entry.result.as_ref().map_or(0, |result| result.data.len() as u64)).collect()
}

/// A sleep has ended for the function when it was told so, not when its time has come.
fn has_ended(entry: &JournalEntry) -> bool {
    match entry.status() {
        StepStatus::Completed | StepStatus::Failed => true,
        StepStatus::Sleeping => entry.order > 0,
        StepStatus::Pending | StepStatus::Running | StepStatus::Waiting | StepStatus::Unspecified => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(path: &str, position: u32) -> StepRef {
        StepRef { path: path.to_owned(), position }
    }

    fn journal(recorded: &[(&str, u32)]) -> Journal {
        let entry = |(path, position): &(&str, u32)| JournalEntry {
            step: Some(step(path, *position)),
            ..Default::default()
        };
        Journal::new(recorded.iter().map(entry).collect())
    }

    #[test]
    fn the_same_calls_find_their_entries_and_new_ones_find_nothing() {
        let mut journal = journal(&[("a", 0), ("item/a", 0)]);

        assert!(journal.take(&step("a", 0)).is_some());
        assert!(journal.take(&step("item/a", 0)).is_some());
        assert!(journal.take(&step("b", 1)).is_none());
        assert_eq!((journal.leftover(), journal.evidence()), (None, None));
    }

    #[test]
    fn parallel_steps_may_have_been_recorded_with_gaps() {
        let mut journal = journal(&[("c", 2)]);

        assert!(journal.take(&step("a", 0)).is_none());
        assert!(journal.take(&step("b", 1)).is_none());
        assert!(journal.take(&step("c", 2)).is_some());
        assert_eq!(journal.evidence(), None);
    }

    #[test]
    fn ends_have_places_in_the_order_of_the_record() {
        let entry = |path: &str, status: StepStatus, order| JournalEntry {
            step: Some(step(path, 0)),
            status: status.into(),
            order,
            ..Default::default()
        };
        let mut journal = Journal::new(vec![
            entry("a", StepStatus::Completed, 3),
            entry("b", StepStatus::Sleeping, 0),
            entry("c", StepStatus::Failed, 1),
            entry("d", StepStatus::Sleeping, 2),
            entry("e", StepStatus::Pending, 0),
        ]);

        assert_eq!(journal.told_len(), 3);
        assert_eq!(journal.at(2), "d");
        let mut place = |path| journal.take(&step(path, 0)).unwrap().place;
        assert_eq!(["a", "b", "c", "d", "e"].map(&mut place), [3, 0, 1, 2, 0]);
    }

    #[test]
    fn a_renamed_step_is_evidence() {
        let mut journal = journal(&[("charge", 0)]);

        assert!(journal.take(&step("bill", 0)).is_none());
        assert_eq!(journal.evidence().unwrap(), "recorded charge at position 0, got bill");
        assert_eq!(journal.leftover(), journal.evidence());
    }

    #[test]
    fn swapped_inserted_and_removed_steps_are_evidence() {
        let recorded = [("a", 0), ("b", 1), ("c", 2)];

        for called in [step("b", 0), step("new", 1), step("c", 1)] {
            let mut journal = journal(&recorded);
            journal.take(&called);
            assert!(journal.evidence().is_some(), "{called:?}");
        }
    }

    #[test]
    fn a_step_that_moved_to_a_free_position_is_evidence() {
        let mut journal = journal(&[("a", 0)]);

        assert!(journal.take(&step("a", 3)).is_some());
        assert_eq!(journal.evidence().unwrap(), "recorded a at position 0, got it at position 3");
    }

    #[test]
    fn positions_of_another_scope_do_not_matter() {
        let mut journal = journal(&[("item/a", 0)]);

        assert!(journal.take(&step("b", 0)).is_none());
        assert_eq!(journal.leftover().unwrap(), "recorded item/a, but the workflow ended without it");
    }
}
