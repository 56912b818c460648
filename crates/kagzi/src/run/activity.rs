//! How many operations of a run make progress, and how many wait for a time: the question behind parking.

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

/// Counts the operations of one run.
#[derive(Default)]
pub(crate) struct Activity {
    counts: Mutex<Counts>,
    /// The executor. It must look again when the last active operation blocks, and that may happen in
    /// another task if user code spawned one.
    executor: AtomicWaker,
}

#[derive(Default)]
struct Counts {
    /// Executing, waiting for a permit, or waiting for the server's word.
    active: u32,
    /// Waiting until a retry or a sleep is due.
    blocked: u32,
}

impl Activity {
    pub(crate) fn begin(&self) -> Operation<'_> {
        self.counts.lock().active += 1;
        Operation { activity: self, blocked: false }
    }

    /// Nothing runs and nothing can until a retry or sleep is due.
    pub(crate) fn is_parkable(&self) -> bool {
        self.counts.lock().is_parkable()
    }

    pub(crate) fn watch(&self, executor: &std::task::Waker) {
        self.executor.register(executor);
    }

    pub(crate) fn wake_executor(&self) {
        self.executor.wake();
    }

    fn change(&self, apply: impl FnOnce(&mut Counts)) {
        let parkable = {
            let mut counts = self.counts.lock();
            apply(&mut counts);
            counts.is_parkable()
        };
        if parkable {
            self.wake_executor();
        }
    }
}

impl Counts {
    fn is_parkable(&self) -> bool {
        self.active == 0 && self.blocked > 0
    }
}

/// One operation of a run, from its first poll until it ends or is dropped.
pub(crate) struct Operation<'a> {
    activity: &'a Activity,
    blocked: bool,
}

impl Operation<'_> {
    /// Waits for a time from now on.
    pub(crate) fn block(&mut self) {
        assert!(!self.blocked, "an operation blocks once before it resumes");
        self.blocked = true;
        self.activity.change(|counts| {
            counts.active -= 1;
            counts.blocked += 1;
        });
    }

    /// Its time came while the run was still held.
    pub(crate) fn resume(&mut self) {
        assert!(self.blocked, "only a blocked operation resumes");
        self.blocked = false;
        self.activity.change(|counts| {
            counts.active += 1;
            counts.blocked -= 1;
        });
    }
}

impl Drop for Operation<'_> {
    fn drop(&mut self) {
        let blocked = self.blocked;
        self.activity.change(|counts| {
            if blocked {
                counts.blocked -= 1;
            } else {
                counts.active -= 1;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_parkable_only_when_all_its_operations_are_blocked() {
        let activity = Activity::default();
        assert!(!activity.is_parkable());

        let mut one = activity.begin();
        let other = activity.begin();
        one.block();
        assert!(!activity.is_parkable());

        drop(other);
        assert!(activity.is_parkable());

        one.resume();
        assert!(!activity.is_parkable());
    }
}
