//! Fail: the function returned an error.

use super::ending::{self, Ending};
use crate::{
    Aggregate, Change, Ends, EventKind, FailedAttempt, Failure, Lease, Name, Rejection, Rule, Run, RunFailed,
    State, Timestamp, Verdict, backoff::seed,
};

/// Ends the run with an error: that of `step`, if the function returned the error of a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Fail {
    pub failure: Failure,
    pub step: Option<Name>,
}

impl Rule for Fail {
    type Sender = Lease;
    type Reply = RunFailed;

    fn repeat(&self, _: Timestamp, seen: &Aggregate) -> Option<RunFailed> {
        match &seen.run.state {
            State::Failed { .. } => Some(RunFailed { retry_at: None }),
            State::Waiting(parked) if parked.step.is_none() => Some(RunFailed { retry_at: parked.at }),
            State::Ready { .. } | State::Leased(_) | State::Waiting(_) => None,
            State::Paused { .. } | State::Completed => None,
            State::Cancelled { .. } | State::TimedOut { .. } => None,
        }
    }

    /// Ends the run as FAILED, or executes it again where it asked for that.
    fn decide(&self, now: Timestamp, seen: &Aggregate, _: &Lease) -> Result<Change<RunFailed>, Rejection> {
        let Fail { failure, step } = self;
        // A name that means nothing here is not a reason to keep a failed run alive.
        let step = step.as_ref().filter(|step| seen.failed_for_good(step));
        if let Some(retry_at) = retry_at(now, seen, failure) {
            return Ok(retry(seen, failure, step, retry_at));
        }
        let over = RunFailed { retry_at: None };
        let mut change = ending::end(now, seen, Ending::Failed, failure.clone(), over);
        if let Some((EventKind::RunFailed { step: named, .. }, _)) = change.events.first_mut() {
            *named = step.cloned();
        }
        Ok(change)
    }

    fn ends(&self) -> Ends<'_> {
        Ends::Lease
    }
}

/// When the whole run is executed again: only where it asked for run-level retries.
fn retry_at(now: Timestamp, seen: &Aggregate, failure: &Failure) -> Option<Timestamp> {
    let run = &seen.run;
    let policy = run.options.run_retry.as_ref()?;
    let failed = FailedAttempt {
        attempt: run.attempts.saturating_add(1),
        failure,
        seed: seed(&[run.id.0.as_bytes()]),
        elapsed_ms: run.started_at.map_or(0, |at| now.remaining_ms(at)),
        run_retries: 0,
        run_retry_ms: 0,
        run_asked_ms: 0,
    };
    match policy.verdict(&failed) {
        Verdict::RetryAfter { delay_ms } => Some(now.plus_ms(delay_ms)),
        Verdict::Final(_) => None,
    }
}

/// Executes again only what failed the run: what the function has gone past is history.
fn retry(seen: &Aggregate, failure: &Failure, step: Option<&Name>, at: Timestamp) -> Change<RunFailed> {
    let attempt = seen.run.attempts.saturating_add(1);
    let state = State::retry(None, attempt, at, failure.clone());
    let run = Run { state, attempts: attempt, crashes: 0, ..seen.run.clone() };
    let forgives = seen.forgivable(step);
    let event = EventKind::RunRetried { attempt, failure: failure.clone(), at, forgives };
    Change::new(run, event, RunFailed { retry_at: Some(at) })
}
