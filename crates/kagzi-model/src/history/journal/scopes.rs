//! Scopes that were recorded as one: what lies in them is left out of the journal.

use super::Journal;
use crate::history::{JournalState, scopes_around};

/// So many entries come together before the first look which of them lie in a recorded scope.
const KEPT_MIN: usize = 64;

impl Journal {
    /// A scope was recorded as one. What lies in it is cleared away now and then, so that the work does not
    /// grow with the scopes times the entries.
    pub(super) fn end_scope(&mut self) {
        self.scopes += 1;
        if self.entries.len() >= 2 * self.kept.max(KEPT_MIN) {
            self.clear_scopes();
        }
    }

    /// Whether an entry lies in a scope that was recorded as one: no replay calls it.
    pub(super) fn is_in_recorded_scope(&self, path: &str) -> bool {
        let is_recorded = |scope: &str| {
            let told = self.index.get(scope).and_then(|at| self.entries[*at].as_ref());
            told.is_some_and(|told| matches!(told.entry.state, JournalState::Completed { .. }))
        };
        self.scopes > 0 && scopes_around(path).any(is_recorded)
    }

    /// Forgets all that lies in scopes that were recorded as one.
    pub(super) fn clear_scopes(&mut self) {
        let is_left_out = |journal: &Journal, at: usize| {
            let told = journal.entries[at].as_ref();
            told.is_some_and(|told| journal.is_in_recorded_scope(&told.entry.path))
        };
        let left_out: Vec<usize> = (0..self.entries.len()).filter(|at| is_left_out(self, *at)).collect();
        for at in left_out {
            let Some(told) = self.entries[at].take() else { continue };
            let entry = told.entry;
            self.index.remove(&entry.path);
            self.waits.remove(&entry.path);
            self.drop_payload(entry.sources.progress, entry.progress);
            if let JournalState::Completed { result } = entry.state {
                self.drop_payload(entry.sources.result, Some(result));
            }
        }
        self.entries.retain(Option::is_some);
        self.kept = self.entries.len();
        for (at, told) in self.entries.iter().enumerate() {
            if let Some(place) = told.as_ref().and_then(|told| self.index.get_mut(&told.entry.path)) {
                *place = at;
            }
        }
    }
}
