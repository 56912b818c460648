//! Polls a workflow function until it ends, parks or must stop, and reports which.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use kagzi_proto::v1::{self, report};

use crate::run::context::WorkflowContext;
use crate::run::state::{RunEnd, RunState};
use crate::run::uplink::{Uplink, Verdict};
use crate::worker::handlers::Handlers;
use crate::{failure, limits};

/// Executes an assigned run and returns when the server has acknowledged how it ended. Until then the
/// run counts as in flight, so that its lease is renewed and survives an outage.
pub(crate) async fn execute(mut assign: Box<v1::Assign>, handlers: Arc<Handlers>, uplink: Uplink) {
    let handler = handlers.get(&assign.workflow_type);
    let decoded = uplink.codecs.decode_assign(&mut assign);
    let input = assign.input.take();
    let workflow_type = std::mem::take(&mut assign.workflow_type);
    let run = RunState::new(*assign, uplink);
    let Some(handler) = handler else {
        let reason = format!("no handler for workflow type '{workflow_type}'");
        return report_end(&run, RunEnd::Released(reason)).await;
    };
    if let Err(message) = decoded {
        // Not a failure: with the right key or codec the run can go on.
        return report_end(&run, RunEnd::Blocked(message)).await;
    }
    let run = Arc::new(run);
    let end = match handler(WorkflowContext::new(run.clone()), input.as_ref()) {
        Ok(function) => poll_to_end(&run, function).await,
        Err(invalid) => RunEnd::Failed(*invalid),
    };
    report_end(&run, end).await;
}

/// The function is dropped when this returns, before its end is reported: a parked run must not go on.
async fn poll_to_end(run: &RunState, function: BoxFuture<'static, anyhow::Result<v1::Payload>>) -> RunEnd {
    let mut function = pin!(AssertUnwindSafe(function).catch_unwind());
    let mut sending = FuturesUnordered::new();
    let mut ended = None;
    poll_fn(|cx| {
        run.activity.watch(cx.waker());
        // Before the function: the step that waits for this acknowledgement then goes on in the same poll.
        while let Poll::Ready(Some(())) = sending.poll_next_unpin(cx) {}
        ended = ended.take().or_else(|| run.take_halt());
        if ended.is_none() {
            run.trailing.executor_polls();
            let polled = function.as_mut().poll(cx);
            // Asked first: a function that calls a wrong step and still returns has not completed.
            ended = run.take_halt().or_else(|| end_of(run, polled));
            for recorded in run.trailing.take_to_send() {
                sending.push(run.send_trailing(recorded));
            }
            while let Poll::Ready(Some(())) = sending.poll_next_unpin(cx) {}
        }
        // The end comes after the results that were sent before it, and parking is an end.
        if !sending.is_empty() {
            return Poll::Pending;
        }
        match ended.take() {
            Some(end) => Poll::Ready(end),
            None if run.activity.is_parkable() => Poll::Ready(RunEnd::Parked),
            None => Poll::Pending,
        }
    })
    .await
}

type Polled = Poll<Result<anyhow::Result<v1::Payload>, Box<dyn Any + Send>>>;

fn end_of(run: &RunState, polled: Polled) -> Option<RunEnd> {
    match polled {
        Poll::Ready(Ok(Ok(output))) => Some(completed(run, output)),
        Poll::Ready(Ok(Err(error))) => {
            Some(RunEnd::Failed(run.without_large_details(failure::of_error(&error))))
        }
        Poll::Ready(Err(panic)) => Some(RunEnd::Failed(failure::of_panic(&*panic))),
        Poll::Pending => None,
    }
}

fn completed(run: &RunState, output: v1::Payload) -> RunEnd {
    if let Some(message) = run.journal.lock().leftover() {
        return RunEnd::Blocked(message);
    }
    match run.encode("the run's output", output) {
        Ok(output) => RunEnd::Completed(output, run.trailing.take_small(limits::TRAILING_BYTES_MAX)),
        Err(failure) => RunEnd::Failed(*failure),
    }
}

/// An end that the server refuses becomes the next milder one: every assigned run must end somehow, or it
/// would hold its slot until the lease expires.
async fn report_end(run: &RunState, mut end: RunEnd) {
    loop {
        let fallback = match &end {
            RunEnd::Completed(..) | RunEnd::Blocked(_) => Fallback::Fail,
            RunEnd::Failed(_) | RunEnd::Parked => Fallback::Release,
            RunEnd::Released(_) => Fallback::GiveUp,
        };
        let (code, message) = match run.submit(body(end)).await {
            Verdict::Refused { code, message } => (code, message),
            Verdict::Committed | Verdict::Retry { .. } | Verdict::Final { .. } | Verdict::Sleeping { .. } => {
                return;
            }
        };
        tracing::warn!(run = %run.lease.run_id, %code, %message, "the end of a run was refused");
        end = match fallback {
            Fallback::Fail => RunEnd::Failed(failure::new(&code, message, true)),
            Fallback::Release => RunEnd::Released(message),
            Fallback::GiveUp => return,
        };
    }
}

enum Fallback {
    Fail,
    Release,
    GiveUp,
}

fn body(end: RunEnd) -> report::Body {
    match end {
        RunEnd::Completed(output, steps) => {
            report::Body::RunCompleted(v1::RunCompleted { output: Some(output), steps })
        }
        RunEnd::Failed(failure) => {
            report::Body::RunFailed(Box::new(v1::RunFailed { failure: Some(failure), step: String::new() }))
        }
        RunEnd::Parked => report::Body::RunParked(v1::RunParked::default()),
        RunEnd::Blocked(message) => report::Body::RunBlocked(v1::RunBlocked { message }),
        RunEnd::Released(reason) => report::Body::RunReleased(v1::RunReleased { reason }),
    }
}
