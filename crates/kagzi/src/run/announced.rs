//! Which retries the `on_retry` hooks of this worker were told of.
//!
//! A hook is told when the server has scheduled the retry. Should the worker end between the two, or the
//! server itself have ended the attempt, the next execution finds a retry that nobody was told of.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};

use parking_lot::Mutex;

use crate::limits;

/// Remembers the latest announcements, as hashes: a false "was told" needs two equal hashes of 64 bits.
#[derive(Default)]
pub(crate) struct Announced {
    hasher: RandomState,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    set: HashSet<u64>,
    oldest_first: VecDeque<u64>,
}

impl Announced {
    /// True the first time it is asked about this failed attempt.
    pub(crate) fn is_new(&self, run_id: &str, path: &str, attempt: u32) -> bool {
        let hash = self.hasher.hash_one((run_id, path, attempt));
        let mut known = self.known.lock();
        if !known.set.insert(hash) {
            return false;
        }
        known.oldest_first.push_back(hash);
        if known.oldest_first.len() > limits::ANNOUNCED_LEN_MAX
            && let Some(oldest) = known.oldest_first.pop_front()
        {
            known.set.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_retry_is_new_once_and_old_ones_are_forgotten() {
        let announced = Announced::default();

        assert!(announced.is_new("r1", "charge", 1));
        assert!(!announced.is_new("r1", "charge", 1));
        assert!(announced.is_new("r1", "charge", 2));
        assert!(announced.is_new("r2", "charge", 1));

        for attempt in 0..limits::ANNOUNCED_LEN_MAX as u32 {
            announced.is_new("r3", "charge", attempt);
        }
        assert!(announced.is_new("r1", "charge", 1));
    }
}
