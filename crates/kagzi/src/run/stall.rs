//! A replay that cannot go on: the function stands still, and what is recorded next was not called. Its code
//! has changed, or it waits for something that is no operation, a timer of its own or a channel.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;

use tokio::time::Sleep;

use crate::limits;
use crate::run::state::{RunEnd, RunState};

/// The replay waits for a call that does not come.
pub(crate) struct Stall {
    place: u32,
    warned: bool,
    timer: Pin<Box<Sleep>>,
}

/// Who holds the function's waker besides whoever the function waits for: the run, the waker made of it, and
/// the executor while it polls.
const FUNCTION_WAKERS: usize = 3;

/// How the run ends, unless there is hope that the call still comes.
pub(crate) fn stalled(
    run: &RunState,
    stall: &mut Option<Stall>,
    place: u32,
    cx: &mut Context<'_>,
) -> Option<RunEnd> {
    let (path, evidence) = {
        let journal = run.journal.lock();
        (journal.at(place), journal.evidence())
    };
    if let Some(evidence) = evidence {
        return Some(RunEnd::Blocked(evidence));
    }
    // Nobody else could ever wake the function.
    if Arc::strong_count(&run.function) <= FUNCTION_WAKERS {
        let message = format!("recorded {path} next, but the workflow did not call it: its code has changed");
        return Some(RunEnd::Blocked(message));
    }
    if stall.as_ref().is_none_or(|stall| stall.place != place) {
        let timer = Box::pin(tokio::time::sleep(limits::STALL_WARNED_AFTER));
        *stall = Some(Stall { place, warned: false, timer });
    }
    let stall = stall.as_mut()?;
    while stall.timer.as_mut().poll(cx).is_ready() {
        if stall.warned {
            let message = format!(
                "recorded {path} next, but for {} s the workflow has waited for something else that is not \
                 recorded; \
                 a timer, a channel or a request belongs into a step, ctx.sleep or ctx.timeout",
                limits::STALL_MAX.as_secs()
            );
            return Some(RunEnd::Blocked(message));
        }
        tracing::warn!(run = %run.lease.run_id, step = %path, "a replay waits for something that is not \
            recorded");
        stall.warned = true;
        stall.timer = Box::pin(tokio::time::sleep(limits::STALL_MAX - limits::STALL_WARNED_AFTER));
    }
    None
}
