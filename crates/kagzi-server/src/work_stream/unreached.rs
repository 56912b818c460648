//! Leases that this stream was given and that its worker knows nothing of yet.

use std::collections::HashMap;

use kagzi_model::{LeaseRef, RunId};

/// By run. A run that was given back may be leased to the same stream again before the answer to the giving
/// back is heard, so whoever forgets a lease has to name it: the newer one stays.
#[derive(Debug, Default)]
pub struct Unreached {
    leases: HashMap<RunId, LeaseRef>,
}

impl Unreached {
    pub fn add(&mut self, lease: LeaseRef) {
        self.leases.insert(lease.run, lease);
    }

    pub fn contains(&self, lease: &LeaseRef) -> bool {
        self.leases.get(&lease.run) == Some(lease)
    }

    /// Forgets this lease, and no other of the same run. Answers whether it was there.
    pub fn remove(&mut self, lease: &LeaseRef) -> bool {
        let is_there = self.contains(lease);
        if is_there {
            self.leases.remove(&lease.run);
        }
        is_there
    }

    pub fn all(&self) -> impl Iterator<Item = &LeaseRef> {
        self.leases.values()
    }

    pub fn take_all(&mut self) -> Vec<LeaseRef> {
        std::mem::take(&mut self.leases).into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(epoch: u64) -> LeaseRef {
        LeaseRef { namespace: "shop".into(), run: RunId(uuid::Uuid::from_u128(1)), epoch }
    }

    #[test]
    fn the_end_of_a_giving_back_does_not_forget_the_lease_that_came_meanwhile() {
        let mut unreached = Unreached::default();
        unreached.add(lease(1));
        // The run that is given back comes again, and only then the giving back is answered.
        unreached.add(lease(2));

        assert!(!unreached.remove(&lease(1)));

        assert!(unreached.contains(&lease(2)));
        assert!(unreached.remove(&lease(2)));
        assert_eq!(unreached.take_all(), []);
    }
}
