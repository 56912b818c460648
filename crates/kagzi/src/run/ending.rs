//! How an execution ended, and telling the server.

use std::any::Any;
use std::sync::Arc;
use std::task::Poll;

use futures_util::future::BoxFuture;
use kagzi_proto::v1::{self, report};

use crate::run::context::WorkflowContext;
use crate::run::state::{RunEnd, RunState};
use crate::run::uplink::Verdict;
use crate::worker::observer::RunOutcome;
use crate::{failure, trace};

/// What a poll of the function came to; an error is its panic.
pub(crate) type Polled = Result<Poll<anyhow::Result<v1::Payload>>, Box<dyn Any + Send>>;

/// What a failure calls the value that the function returned.
const OUTPUT: &str = "the run's output";
const NEXT_INPUT: &str = "the input of the next generation";

/// A function that has ended.
pub(crate) enum Ended<'a> {
    Now(RunEnd),
    /// It has returned, and codecs have yet to work on its output.
    Encoding(BoxFuture<'a, RunEnd>),
}

/// How the function ended, if it did.
pub(crate) fn end_of(run: &RunState, polled: Polled) -> Option<Ended<'_>> {
    let polled = match polled {
        Ok(Poll::Pending) => return None,
        Ok(Poll::Ready(returned)) => Ok(returned),
        Err(panic) => Err(panic),
    };
    if let Some(message) = run.journal.lock().leftover() {
        return Some(Ended::Now(RunEnd::Blocked(message)));
    }
    Some(Ended::Now(match polled {
        Ok(Ok(output)) if run.uplink.codecs.is_empty() => completed(run.fitting(OUTPUT, output)),
        Ok(Ok(output)) => return Some(Ended::Encoding(Box::pin(encoded(run, output)))),
        Ok(Err(error)) => match failure::next_input(&error) {
            Some(input) if run.uplink.codecs.is_empty() => continued(run.fitting(NEXT_INPUT, input)),
            Some(input) => return Some(Ended::Encoding(Box::pin(encoded_next(run, input)))),
            None => {
                let step = failure::step_of(&error);
                let failure = run.without_large_details(failure::of_returned(error, &run.uplink.equipment));
                RunEnd::Failed { failure, step }
            }
        },
        Err(panic) => RunEnd::failed(failure::of_panic(&*panic)),
    }))
}

async fn encoded(run: &RunState, output: v1::Payload) -> RunEnd {
    completed(run.encode(OUTPUT, output).await)
}

async fn encoded_next(run: &RunState, input: v1::Payload) -> RunEnd {
    continued(run.encode(NEXT_INPUT, input).await)
}

fn continued(sent: Result<v1::Payload, Box<v1::Failure>>) -> RunEnd {
    match sent {
        Ok(input) => RunEnd::Continued(input, Vec::new()),
        Err(failure) => RunEnd::failed(*failure),
    }
}

fn completed(sent: Result<v1::Payload, Box<v1::Failure>>) -> RunEnd {
    match sent {
        Ok(output) => RunEnd::Completed(output, Vec::new()),
        Err(failure) => RunEnd::failed(*failure),
    }
}

/// How an execution ended on this worker, for people and observers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Completed,
    Continued,
    Failed,
    Parked,
    Blocked,
    Released,
    /// Nobody was told: the lease was lost, or the worker gave up.
    Lost,
}

impl Outcome {
    fn of(end: &RunEnd) -> Outcome {
        match end {
            RunEnd::Completed(..) => Outcome::Completed,
            RunEnd::Continued(..) => Outcome::Continued,
            RunEnd::Failed { .. } => Outcome::Failed,
            RunEnd::Parked(..) | RunEnd::Left => Outcome::Parked,
            RunEnd::Blocked(_) => Outcome::Blocked,
            RunEnd::Released(_) => Outcome::Released,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::Continued => "continued",
            Outcome::Failed => "failed",
            Outcome::Parked => "parked",
            Outcome::Blocked => "blocked",
            Outcome::Released => "given back",
            Outcome::Lost => "lost",
        }
    }

    /// What observers call it: none of what is no end.
    fn observed(self) -> Option<RunOutcome> {
        match self {
            Outcome::Completed => Some(RunOutcome::Completed),
            Outcome::Continued => Some(RunOutcome::Continued),
            Outcome::Failed => Some(RunOutcome::Failed),
            Outcome::Parked | Outcome::Blocked | Outcome::Released | Outcome::Lost => None,
        }
    }
}

/// Nothing of the run is left behind when its task ends or is aborted, and its span says how it ended.
pub(crate) struct Over<'a> {
    run: &'a Arc<RunState>,
    outcome: Outcome,
}

impl<'a> Over<'a> {
    pub(crate) fn new(run: &'a Arc<RunState>) -> Over<'a> {
        Over { run, outcome: Outcome::Lost }
    }

    /// The server has been told.
    pub(crate) fn say(mut self, outcome: Outcome) {
        self.outcome = outcome;
        if let Some(observed) = outcome.observed() {
            let context = WorkflowContext::new(self.run.clone());
            self.run.uplink.equipment.observers.run_ended(&context, observed);
        }
    }
}

impl Drop for Over<'_> {
    fn drop(&mut self) {
        let run = self.run;
        run.span.record("outcome", self.outcome.name());
        run.close_mailbox();
        let left = run.turns.lock().clear();
        drop(left);
        run.missed.clear();
        let unpolled = std::mem::take(&mut *run.spawned.lock());
        drop(unpolled);
    }
}

/// An end that the server refuses becomes the next milder one: every assigned run must end somehow, or it
/// would hold its slot until the lease expires.
pub(crate) async fn report_end(run: &RunState, mut end: RunEnd) -> Outcome {
    loop {
        let outcome = Outcome::of(&end);
        if let RunEnd::Failed { failure, .. } = &end {
            trace::failed(&run.span, &failure.message);
        }
        let fallback = match &end {
            RunEnd::Completed(..) | RunEnd::Continued(..) | RunEnd::Blocked(_) => Fallback::Fail,
            RunEnd::Failed { .. } | RunEnd::Parked(..) => Fallback::Release,
            RunEnd::Released(_) | RunEnd::Left => Fallback::GiveUp,
        };
        let Some(body) = body(end) else { return Outcome::Parked };
        let (code, message) = match run.submit(body).await {
            Verdict::Refused { code, message } => (code, message),
            Verdict::Committed
            | Verdict::Retry { .. }
            | Verdict::Final { .. }
            | Verdict::Sleeping { .. }
            | Verdict::ChildBegan(_)
            | Verdict::Waited(_) => return outcome,
        };
        tracing::warn!(run = %run.lease.run_id, %code, %message, "the end of a run was refused");
        end = match fallback {
            Fallback::Fail => RunEnd::failed(failure::new(&code, message, true)),
            Fallback::Release => RunEnd::Released(message),
            Fallback::GiveUp => return Outcome::Lost,
        };
    }
}

enum Fallback {
    Fail,
    Release,
    GiveUp,
}

fn body(end: RunEnd) -> Option<report::Body> {
    Some(match end {
        RunEnd::Completed(output, steps) => {
            report::Body::RunCompleted(v1::RunCompleted { output: Some(output), steps })
        }
        RunEnd::Continued(input, steps) => {
            report::Body::RunContinued(v1::RunContinued { input: Some(input), steps })
        }
        RunEnd::Failed { failure, step } => {
            report::Body::RunFailed(Box::new(v1::RunFailed { failure: Some(failure), step }))
        }
        RunEnd::Parked(waits, wake) => report::Body::RunParked(v1::RunParked { waits, wake: wake.into() }),
        RunEnd::Left => return None,
        RunEnd::Blocked(message) => report::Body::RunBlocked(v1::RunBlocked { message }),
        RunEnd::Released(reason) => report::Body::RunReleased(v1::RunReleased { reason }),
    })
}
