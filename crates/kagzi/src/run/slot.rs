//! One call of an operation: what the executor tells it, and whether the function still looks at it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;
use kagzi_proto::v1::{self, StepRef};
use parking_lot::Mutex;

use crate::run::inside;
use crate::run::missed::{Look, Told, Turn};
use crate::run::state::RunState;
use crate::run::uplink::Verdict;

/// The waker that the function is polled with. It tells whether the function was woken, and wakes the
/// executor's task only when that is not polling anyway.
#[derive(Default)]
pub(crate) struct FunctionWaker {
    woken: AtomicBool,
    /// How often the function was polled.
    polls: AtomicU64,
    /// The executor is being polled and will look again before it returns.
    busy: AtomicBool,
    /// The executor is to look again, although nothing changed for the function.
    look: AtomicBool,
    /// Whose waker a part of the function is being polled with; 0 = none.
    part: AtomicUsize,
    executor: AtomicWaker,
}

impl FunctionWaker {
    pub(crate) fn begin(&self, executor: &Waker) {
        self.executor.register(executor);
        self.busy.store(true, Ordering::SeqCst);
    }

    /// The executor is about to look whose turn it is.
    pub(crate) fn looks(&self) {
        self.look.store(false, Ordering::SeqCst);
    }

    /// The executor is about to return. True: it must look once more. Whoever comes after this sees that it
    /// is not busy any more, and wakes it.
    pub(crate) fn end(&self) -> bool {
        self.busy.store(false, Ordering::SeqCst);
        self.woken.load(Ordering::SeqCst) || self.look.load(Ordering::SeqCst)
    }

    pub(crate) fn take_woken(&self) -> bool {
        self.woken.swap(false, Ordering::SeqCst)
    }

    pub(crate) fn count_poll(&self) {
        self.polls.fetch_add(1, Ordering::SeqCst);
    }

    fn polls(&self) -> u64 {
        self.polls.load(Ordering::SeqCst)
    }

    /// Only the executor needs to look: nothing changed for the function.
    pub(crate) fn wake_executor(&self) {
        self.look.store(true, Ordering::SeqCst);
        if !self.busy.load(Ordering::SeqCst) {
            self.executor.wake();
        }
    }

    /// A part that was given to `ctx.spawn` is polled with this waker from now on.
    pub(crate) fn polls_part(&self, waker: Option<&Waker>) {
        self.part.store(waker.map_or(0, |waker| waker.data().addr()), Ordering::SeqCst);
    }

    /// The waker is the function's or its part's own, or one that wakes nobody (`now_or_never`): between the
    /// function and whoever is polled with it there is no list of whom to poll next.
    pub(crate) fn is_direct(self: &Arc<Self>, waker: &Waker) -> bool {
        let polled_with = waker.data().addr();
        polled_with == Arc::as_ptr(self).addr()
            || polled_with == 0
            || polled_with == self.part.load(Ordering::SeqCst)
    }

    pub(crate) fn call(&self) {
        if !self.woken.swap(true, Ordering::SeqCst) && !self.busy.load(Ordering::SeqCst) {
            self.executor.wake();
        }
    }
}

impl Wake for FunctionWaker {
    fn wake(self: Arc<Self>) {
        self.call();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.call();
    }
}

/// One call of an operation.
pub(crate) struct Slot {
    pub(crate) run: Arc<RunState>,
    pub(crate) step: StepRef,
    /// How much the function had been told of at the call. New code begins when that much is durable.
    pub(crate) ticket: u64,
    /// The scope that called it, if that is recorded as one; 0 = none.
    pub(crate) scope: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Who polled last, unless it was the function itself.
    poller: Option<Waker>,
    /// It was polled by somebody who keeps a list of whom to poll next.
    listed_elsewhere: bool,
    /// Woken and not polled since: how often the function had been polled by then.
    woken_after: Option<u64>,
    phase: Phase,
    turn: Turn,
    listed: Option<List>,
    heard: Option<Verdict>,
    gathering: Option<Gathering>,
}

/// Operations that the function waits for together, and when it wants to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gathering {
    /// Tells one from another of the same run.
    pub(crate) number: u64,
    pub(crate) wake: v1::Wake,
}

/// A list that an operation is in, once at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Unsettled,
    Queued,
}

/// What an operation does between two polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Phase {
    /// Waits for the end of the replay, for what is to be durable first, for a permit, for its turn or for an
    /// answer.
    #[default]
    Waits,
    /// Has a permit.
    Executes,
    /// Had one, and is not looked at.
    Lent,
    /// Waits for a time.
    Blocked,
    /// Nobody has it any more.
    Dropped,
}

impl Slot {
    pub(crate) fn new(run: Arc<RunState>, step: StepRef, ticket: u64, scope: usize) -> Arc<Slot> {
        Arc::new(Slot { run, step, ticket, scope, state: Mutex::default() })
    }

    pub(crate) fn phase(&self) -> Phase {
        self.state.lock().phase
    }

    pub(crate) fn set_phase(&self, phase: Phase) {
        self.state.lock().phase = phase;
    }

    /// It is waited for together with others.
    pub(crate) fn gather(&self, gathering: Gathering) {
        self.state.lock().gathering = Some(gathering);
    }

    pub(crate) fn gathering(&self) -> Option<Gathering> {
        self.state.lock().gathering
    }

    /// Notes that it is in a list. False: it was already.
    pub(crate) fn list(&self, list: List) -> bool {
        self.state.lock().listed.replace(list) != Some(list)
    }

    pub(crate) fn unlist(&self) {
        self.state.lock().listed = None;
    }

    /// Makes the operation ready until the function stands still.
    pub(crate) fn release(self: &Arc<Self>) {
        self.state.lock().turn = Turn::Here(self.run.missed.number());
        self.wake_by_ref();
    }

    /// The server's answer to what it asked. The function hears of it in its turn, or not at all.
    pub(crate) fn answer(self: &Arc<Self>, verdict: Verdict) {
        let told = verdict.is_told();
        self.state.lock().heard = Some(verdict);
        if !told {
            self.wake_by_ref();
        }
    }

    fn look(self: &Arc<Self>) -> bool {
        let look = {
            let mut state = self.state.lock();
            let directly = !state.listed_elsewhere;
            state.turn.look(directly)
        };
        match look {
            Look::NotYet => {}
            Look::Ready => self.run.missed.taken(),
            Look::Later(number) => self.run.missed.note(number, self.clone()),
        }
        look == Look::Ready
    }

    /// Returns in its turn.
    pub(crate) async fn released(self: &Arc<Self>) {
        poll_fn(|_| if self.look() { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// Returns with the answer.
    pub(crate) async fn heard(self: &Arc<Self>) -> Verdict {
        poll_fn(|_| {
            let told = self.state.lock().heard.as_ref().map(Verdict::is_told);
            match told {
                None => Poll::Pending,
                Some(true) if !self.look() => Poll::Pending,
                Some(_) => self.state.lock().heard.take().map_or(Poll::Pending, Poll::Ready),
            }
        })
        .await
    }

    /// It was woken, and the function has been polled to a standstill since without polling it: it is kept
    /// somewhere and nobody looks at it.
    pub(crate) fn is_dormant(&self) -> bool {
        let woken_after = self.state.lock().woken_after;
        woken_after.is_some_and(|polls| polls < self.run.function.polls())
    }

    fn polled_by(self: &Arc<Self>, poller: &Waker) {
        let mut state = self.state.lock();
        state.woken_after = None;
        state.listed_elsewhere = !self.run.function.is_direct(poller);
        if poller.will_wake(&self.run.waker) {
            state.poller = None;
        } else if !state.poller.as_ref().is_some_and(|known| known.will_wake(poller)) {
            state.poller = Some(poller.clone());
        }
        if state.phase == Phase::Lent {
            state.phase = Phase::Executes;
            drop(state);
            self.run.turns.lock().take_again(self.clone());
        }
    }

    /// Polls the operation as long as it is polled where it may be.
    pub(crate) async fn track<T>(
        self: &Arc<Self>,
        operation: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let mut operation = pin!(operation);
        let waker = Waker::from(self.clone());
        poll_fn(|cx| {
            if let Some(misplaced) = inside::misplaced(self.run.key(), self.scope, &self.step.path) {
                return Poll::Ready(Err(misplaced));
            }
            self.polled_by(cx.waker());
            operation.as_mut().poll(&mut Context::from_waker(&waker))
        })
        .await
    }
}

impl Told for Slot {
    fn offer(self: Arc<Self>) {
        let waits = self.state.lock().turn.offer();
        if waits {
            self.wake_by_ref();
        }
    }

    fn pass(&self) {
        self.state.lock().turn.pass();
    }

    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }
}

impl Wake for Slot {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    /// The poller may have been a waker that wakes nobody (`now_or_never`), so the function is always polled.
    fn wake_by_ref(self: &Arc<Self>) {
        let poller = {
            let mut state = self.state.lock();
            let polls = self.run.function.polls();
            state.woken_after.get_or_insert(polls);
            state.poller.clone()
        };
        if let Some(poller) = poller {
            poller.wake();
        }
        self.run.function.call();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::task::noop_waker;

    use super::*;

    /// Another thread may drop an operation between the executor's last look and its return.
    #[test]
    fn a_busy_executor_looks_again_for_whatever_came_after_its_last_look() {
        let function = FunctionWaker::default();
        function.begin(&noop_waker());
        function.looks();
        assert!(!function.end(), "nothing came");

        function.begin(&noop_waker());
        function.looks();
        function.wake_executor();
        assert!(function.end(), "an operation that others waited for was dropped");

        function.begin(&noop_waker());
        function.looks();
        function.call();
        assert!(function.end(), "the function was woken");
    }
}
