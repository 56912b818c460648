//! Journals of long runs, kept from one assignment to the next: what a wake-up reads is what happened since
//! the last one, however long the run has been polling.
//!
//! Events never change, so a journal that is kept is never wrong, only behind; whoever wrote the events in
//! between.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kagzi_model::{Journal, RunId};

use parking_lot::Mutex;

/// Shorter histories are read again: that is one small read.
const KEPT_LEN_MIN: u64 = 256;
/// All that are kept together. A larger one is not kept at all.
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The journals that are kept, those that were used longest ago forgotten first.
#[derive(Default)]
pub struct Journals {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    by_run: HashMap<RunId, (u64, Arc<Journal>)>,
    by_use: BTreeMap<u64, RunId>,
    uses: u64,
    bytes: usize,
}

impl Journals {
    /// Takes out what is kept of a run; nothing = a journal from the beginning.
    pub fn take(&self, run: RunId) -> Journal {
        let kept = self.kept.lock().remove(run);
        // Copied only if the last assignment is still being sent.
        kept.map(Arc::unwrap_or_clone).unwrap_or_default()
    }

    /// Keeps a journal for the next time, if it is worth it.
    pub fn keep(&self, run: RunId, journal: Arc<Journal>) {
        if journal.last_seq() < KEPT_LEN_MIN || journal.bytes() > KEPT_BYTES_MAX {
            return;
        }
        let mut kept = self.kept.lock();
        kept.remove(run);
        kept.bytes += journal.bytes();
        kept.uses += 1;
        let used = kept.uses;
        kept.by_use.insert(used, run);
        kept.by_run.insert(run, (used, journal));
        while kept.bytes > KEPT_BYTES_MAX
            && let Some((_, oldest)) = kept.by_use.first_key_value()
        {
            let oldest = *oldest;
            kept.remove(oldest);
        }
    }

    /// The run has ended.
    pub fn forget(&self, run: RunId) {
        drop(self.kept.lock().remove(run));
    }
}

impl Kept {
    fn remove(&mut self, run: RunId) -> Option<Arc<Journal>> {
        let (used, journal) = self.by_run.remove(&run)?;
        self.by_use.remove(&used);
        self.bytes = self.bytes.saturating_sub(journal.bytes());
        Some(journal)
    }
}

#[cfg(test)]
mod tests {
    use kagzi_model::{Event, EventKind, Payload, Projection, Timestamp};
    use uuid::Uuid;

    use super::*;

    fn journal(events: u64, payload: usize) -> Journal {
        let mut journal = Journal::default();
        for seq in 1..=events {
            let payload = (seq == 1).then(|| Payload::new(vec![0; payload]));
            journal.absorb(&Event { seq, at: Timestamp(0), kind: EventKind::RunStarted, payload });
        }
        journal
    }

    fn run(n: u128) -> RunId {
        RunId(Uuid::from_u128(n))
    }

    #[test]
    fn what_was_used_longest_ago_is_forgotten_when_there_is_no_room_for_all() {
        let journals = Journals::default();
        for n in 0..3 {
            journals.keep(run(n), Arc::new(journal(KEPT_LEN_MIN, KEPT_BYTES_MAX / 4)));
        }
        // The first one is used again.
        let first = journals.take(run(0));
        assert_eq!(first.last_seq(), KEPT_LEN_MIN);
        journals.keep(run(0), Arc::new(first));

        journals.keep(run(3), Arc::new(journal(KEPT_LEN_MIN, KEPT_BYTES_MAX / 3)));

        let kept = [0, 1, 2, 3].map(|n| journals.take(run(n)).last_seq() > 0);
        assert_eq!(kept, [true, false, true, true]);
        assert_eq!(journals.kept.lock().bytes, 0);
    }

    #[test]
    fn short_and_huge_journals_are_not_kept() {
        let journals = Journals::default();

        journals.keep(run(1), Arc::new(journal(KEPT_LEN_MIN - 1, 1)));
        journals.keep(run(2), Arc::new(journal(KEPT_LEN_MIN, KEPT_BYTES_MAX + 1)));

        assert_eq!([1, 2].map(|n| journals.take(run(n)).last_seq()), [0, 0]);
    }
}
