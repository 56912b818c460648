//! The parts of a function that it gave to `ctx.spawn`, polled after the function in the order in which they
//! were spawned. The order in which they were woken must not count: most wakes are no part of the record.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use crate::run::slot::FunctionWaker;
use crate::run::state::RunState;

/// The parts of one run that have not ended.
#[derive(Default)]
pub(crate) struct Parts {
    parts: BTreeMap<u64, Part>,
    spawned: u64,
    woken: Arc<Mutex<BTreeSet<u64>>>,
}

struct Part {
    future: BoxFuture<'static, ()>,
    waker: Waker,
}

impl Parts {
    /// Polls all that were woken, also by each other. The first by number goes first: whether one of them was
    /// woken for nothing makes no difference then.
    pub(crate) fn poll(&mut self, run: &RunState) {
        let mut again = Vec::new();
        loop {
            self.take_spawned(run);
            let Some(number) = self.woken.lock().pop_first() else { break };
            let Some(part) = self.parts.get_mut(&number) else { continue };
            run.function.polls_part(Some(&part.waker));
            let polled = part.future.as_mut().poll(&mut Context::from_waker(&part.waker));
            run.function.polls_part(None);
            match polled {
                Poll::Ready(()) => drop(self.parts.remove(&number)),
                // One that wakes itself has its next poll after the function's: others want to go on too.
                Poll::Pending if self.woken.lock().remove(&number) => again.push(number),
                Poll::Pending => {}
            }
        }
        self.woken.lock().extend(again);
    }

    fn take_spawned(&mut self, run: &RunState) {
        for future in std::mem::take(&mut *run.spawned.lock()) {
            let number = self.spawned;
            self.spawned += 1;
            let (woken, function) = (self.woken.clone(), run.function.clone());
            let waker = Waker::from(Arc::new(PartWaker { number, woken, function }));
            self.woken.lock().insert(number);
            self.parts.insert(number, Part { future, waker });
        }
    }
}

struct PartWaker {
    number: u64,
    woken: Arc<Mutex<BTreeSet<u64>>>,
    function: Arc<FunctionWaker>,
}

impl Wake for PartWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.lock().insert(self.number);
        self.function.call();
    }
}
