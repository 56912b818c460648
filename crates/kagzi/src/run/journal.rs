//! The recorded steps of a run, and the check that the code still asks for them in the same order.

use std::collections::HashMap;

use kagzi_proto::v1::{JournalEntry, StepRef};

use crate::run::path::scope_of;

/// Recorded steps that the code has not called yet.
pub(crate) struct Journal {
    entries: HashMap<String, JournalEntry>,
    /// Scope, then position, to path. Kept whole: a position is checked even after its step was called.
    positions: HashMap<String, HashMap<u32, String>>,
}

impl Journal {
    pub(crate) fn new(recorded: Vec<JournalEntry>) -> Journal {
        let mut journal = Journal { entries: HashMap::new(), positions: HashMap::new() };
        journal.entries.reserve(recorded.len());
        for entry in recorded {
            let StepRef { path, position } = entry.step.clone().unwrap_or_default();
            let scope = scope_of(&path).to_owned();
            journal.positions.entry(scope).or_default().insert(position, path.clone());
            journal.entries.insert(path, entry);
        }
        journal
    }

    /// What was recorded for the step that is being called. The error says how the code has changed.
    pub(crate) fn take(&mut self, called: &StepRef) -> Result<Option<JournalEntry>, String> {
        if self.positions.is_empty() {
            return Ok(None);
        }
        let StepRef { path, position } = called;
        let recorded_here = self.positions.get(scope_of(path)).and_then(|scope| scope.get(position));
        if let Some(recorded) = recorded_here.filter(|recorded| *recorded != path) {
            return Err(format!("recorded {recorded} at position {position}, got {path}"));
        }
        match self.entries.remove(path) {
            Some(entry) if recorded_here.is_none() => {
                let recorded_at = entry.step.unwrap_or_default().position;
                Err(format!("recorded {path} at position {recorded_at}, got it at position {position}"))
            }
            entry => Ok(entry),
        }
    }

    /// What the code should have called before it ended: the first by path, so that the message is stable.
    pub(crate) fn leftover(&self) -> Option<String> {
        let path = self.entries.keys().min()?;
        Some(format!("recorded {path}, but the workflow ended without it"))
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

        assert!(journal.take(&step("a", 0)).unwrap().is_some());
        assert!(journal.take(&step("item/a", 0)).unwrap().is_some());
        assert!(journal.take(&step("b", 1)).unwrap().is_none());
        assert_eq!(journal.leftover(), None);
    }

    #[test]
    fn parallel_steps_may_have_been_recorded_with_gaps() {
        let mut journal = journal(&[("c", 2)]);

        assert!(journal.take(&step("a", 0)).unwrap().is_none());
        assert!(journal.take(&step("b", 1)).unwrap().is_none());
        assert!(journal.take(&step("c", 2)).unwrap().is_some());
    }

    #[test]
    fn a_renamed_step_is_noticed() {
        let error = journal(&[("charge", 0)]).take(&step("bill", 0)).unwrap_err();

        assert_eq!(error, "recorded charge at position 0, got bill");
    }

    #[test]
    fn swapped_inserted_and_removed_steps_are_noticed() {
        let recorded = [("a", 0), ("b", 1), ("c", 2)];

        assert!(journal(&recorded).take(&step("b", 0)).is_err());
        assert!(journal(&recorded).take(&step("new", 1)).is_err());
        assert!(journal(&recorded).take(&step("c", 1)).is_err());
    }

    #[test]
    fn a_step_that_moved_to_a_free_position_is_noticed() {
        let error = journal(&[("a", 0)]).take(&step("a", 3)).unwrap_err();

        assert_eq!(error, "recorded a at position 0, got it at position 3");
    }

    #[test]
    fn positions_of_another_scope_do_not_matter() {
        let mut journal = journal(&[("item/a", 0)]);

        assert!(journal.take(&step("b", 0)).unwrap().is_none());
        assert_eq!(journal.leftover().unwrap(), "recorded item/a, but the workflow ended without it");
    }
}
