//! `ctx.spawn`: a part of a workflow that runs beside the rest, polled by the run's own executor.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;

/// The end of a part that was given to [`WorkflowContext::spawn`](crate::WorkflowContext::spawn). Dropped, it
/// ends the part.
#[must_use = "a part that was spawned ends when its handle is dropped"]
pub struct Spawned<T> {
    shared: Arc<Mutex<Shared<T>>>,
}

struct Shared<T> {
    ended: Option<Result<T, Box<dyn Any + Send>>>,
    /// The handle is gone.
    dropped: bool,
    awaits: Option<Waker>,
    part: Option<Waker>,
}

/// The handle, and the part as the executor polls it.
pub(crate) fn spawn<T: Send + 'static>(
    part: impl Future<Output = T> + Send + 'static,
) -> (Spawned<T>, BoxFuture<'static, ()>) {
    let shared = Arc::new(Mutex::new(Shared { ended: None, dropped: false, awaits: None, part: None }));
    let handle = Spawned { shared: shared.clone() };
    let mut part = Some(Box::pin(part));
    let polled = poll_fn(move |cx| {
        if shared.lock().dropped {
            part = None;
        }
        let Some(running) = &mut part else { return Poll::Ready(()) };
        let ended = match catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx))) {
            Ok(Poll::Pending) => {
                shared.lock().part = Some(cx.waker().clone());
                return Poll::Pending;
            }
            Ok(Poll::Ready(value)) => Ok(value),
            Err(panic) => Err(panic),
        };
        part = None;
        let awaits = {
            let mut shared = shared.lock();
            shared.ended = Some(ended);
            shared.awaits.take()
        };
        if let Some(awaits) = awaits {
            awaits.wake();
        }
        Poll::Ready(())
    });
    (handle, Box::pin(polled))
}

impl<T> Future for Spawned<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let ended = {
            let mut shared = self.shared.lock();
            if shared.ended.is_none() {
                shared.awaits = Some(cx.waker().clone());
                return Poll::Pending;
            }
            shared.ended.take()
        };
        match ended {
            Some(Ok(value)) => Poll::Ready(value),
            // As if it had happened here: the run fails with PANIC, or whoever awaits catches it.
            Some(Err(panic)) => resume_unwind(panic),
            None => Poll::Pending,
        }
    }
}

impl<T> Drop for Spawned<T> {
    fn drop(&mut self) {
        let part = {
            let mut shared = self.shared.lock();
            shared.dropped = true;
            shared.part.take()
        };
        if let Some(part) = part {
            part.wake();
        }
    }
}
