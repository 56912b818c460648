//! `ctx.spawn`: a part of a workflow that runs beside the rest, polled by the run's own executor.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use crate::run::inside;
use crate::run::missed::{Look, Told, Turn};
use crate::run::state::RunState;

/// The end of a part that was given to [`WorkflowContext::spawn`](crate::WorkflowContext::spawn). Dropped, it
/// ends the part.
#[must_use = "a part that was spawned ends when its handle is dropped"]
pub struct Spawned<T: Send + 'static> {
    run: Arc<RunState>,
    shared: Arc<Shared<T>>,
}

struct Shared<T>(Mutex<State<T>>);

struct State<T> {
    ended: Option<Result<T, Box<dyn Any + Send>>>,
    /// The end is no part of the record, so it is nobody's turn; but whoever keeps a list of whom to poll
    /// hands it out in its order all the same.
    turn: Turn,
    /// The handle is gone.
    dropped: bool,
    awaits: Option<Waker>,
    part: Option<Waker>,
}

/// The handle, and the part as the executor polls it.
pub(crate) fn spawn<T: Send + 'static>(
    run: &Arc<RunState>,
    part: impl Future<Output = T> + Send + 'static,
) -> (Spawned<T>, BoxFuture<'static, ()>) {
    let state = State { ended: None, turn: Turn::default(), dropped: false, awaits: None, part: None };
    let shared = Arc::new(Shared(Mutex::new(state)));
    let handle = Spawned { run: run.clone(), shared: shared.clone() };
    let mut part = Some(Box::pin(part));
    // A part of a scope that is recorded as one ends with it: what it does later nobody would hear of.
    let scope = inside::scope();
    let number = {
        let run = Arc::downgrade(run);
        move || run.upgrade().map_or(0, |run| run.missed.number())
    };
    let entered = {
        let run = Arc::downgrade(run);
        let is_open = move || run.upgrade().is_some_and(|run| run.turns.lock().scopes.is_open(scope));
        move || (scope > 0).then(|| inside::enter_scope(is_open().then_some(scope)))
    };
    let polled = poll_fn(move |cx| {
        if shared.0.lock().dropped {
            part = None;
        }
        let Some(running) = &mut part else { return Poll::Ready(()) };
        let polled = || {
            let _mark = entered();
            running.as_mut().poll(cx)
        };
        let ended = match catch_unwind(AssertUnwindSafe(polled)) {
            Ok(Poll::Pending) => {
                shared.0.lock().part = Some(cx.waker().clone());
                return Poll::Pending;
            }
            Ok(Poll::Ready(value)) => Ok(value),
            Err(panic) => Err(panic),
        };
        part = None;
        let awaits = {
            let mut state = shared.0.lock();
            state.ended = Some(ended);
            state.turn = Turn::Missed(number());
            state.awaits.clone()
        };
        if let Some(awaits) = awaits {
            awaits.wake();
        }
        Poll::Ready(())
    });
    (handle, Box::pin(polled))
}

impl<T: Send + 'static> Future for Spawned<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let directly = self.run.function.is_direct(cx.waker());
        let (look, ended) = {
            let mut state = self.shared.0.lock();
            state.awaits = Some(cx.waker().clone());
            let look = state.turn.look(directly);
            (look, if look == Look::Ready { state.ended.take() } else { None })
        };
        match look {
            Look::NotYet => {}
            Look::Ready => self.run.missed.taken(),
            Look::Later(number) => self.run.missed.note(number, self.shared.clone()),
        }
        match ended {
            Some(Ok(value)) => Poll::Ready(value),
            // As if it had happened here: the run fails with PANIC, or whoever awaits catches it.
            Some(Err(panic)) => resume_unwind(panic),
            None => Poll::Pending,
        }
    }
}

impl<T: Send + 'static> Told for Shared<T> {
    fn offer(self: Arc<Self>) {
        if self.0.lock().turn.offer() {
            self.wake();
        }
    }

    fn pass(&self) {
        self.0.lock().turn.pass();
    }

    fn wake(self: Arc<Self>) {
        let awaits = self.0.lock().awaits.clone();
        if let Some(awaits) = awaits {
            awaits.wake();
        }
    }
}

impl<T: Send + 'static> Drop for Spawned<T> {
    fn drop(&mut self) {
        let part = {
            let mut state = self.shared.0.lock();
            state.dropped = true;
            state.awaits = None;
            state.part.take()
        };
        if let Some(part) = part {
            part.wake();
        }
    }
}
