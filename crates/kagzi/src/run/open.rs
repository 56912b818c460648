//! An operation between its first poll and its end: when it may begin, and what it leaves behind.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use kagzi_proto::v1::{self, report};

use crate::run::slot::Slot;
use crate::run::state::RunState;
use crate::run::turns::Heard;

/// Returns once the replay is over and what the function had been told at the call is durable.
pub(crate) async fn settled(slot: &Arc<Slot>) {
    poll_fn(|_| if slot.run.turns.lock().is_settled(slot) { Poll::Ready(()) } else { Poll::Pending }).await;
}

/// Returns with a permit to execute.
pub(crate) async fn permitted(slot: &Arc<Slot>) {
    poll_fn(|_| if slot.run.turns.lock().try_begin(slot) { Poll::Ready(()) } else { Poll::Pending }).await;
}

/// An operation that is open: from its first poll until it ends or is dropped.
pub(crate) struct Open<'a> {
    slot: &'a Arc<Slot>,
    number: u64,
}

impl<'a> Open<'a> {
    pub(crate) fn new(slot: &'a Arc<Slot>) -> Open<'a> {
        let number = slot.run.turns.lock().open(slot);
        Open { slot, number }
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.slot.run.turns.lock().close(self.number, self.slot);
        // What others wait for may have become free.
        self.slot.run.function.wake_executor();
    }
}

impl RunState {
    /// A step has ended: it returns in its turn.
    pub(crate) fn ended(&self, slot: &Arc<Slot>, recorded: v1::StepRecorded) {
        self.scope_ended(slot, recorded, Heard::default());
    }

    /// The same for a scope, with what was heard inside it.
    pub(crate) fn scope_ended(&self, slot: &Arc<Slot>, recorded: v1::StepRecorded, inside: Heard) {
        self.turns.lock().ended(slot, recorded, inside);
        self.function.wake_executor();
    }

    /// Asks the server in its turn.
    pub(crate) fn ask(&self, slot: &Arc<Slot>, body: report::Body) {
        self.turns.lock().ask(slot, body);
        self.function.wake_executor();
    }
}
