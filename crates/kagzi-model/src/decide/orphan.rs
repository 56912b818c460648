//! Orphan: the worker is gone, so the run is taken back.

use super::{ending, fail_step};
use crate::{
    Aggregate, Attempted, Change, EventKind, Failure, Lease, Name, Reclaimed, Rejection, RetryPolicy, Rule,
    Run, State, Step, StepRef, StepState, Timestamp, backoff_seed, codes::WORKER_LOST,
};

/// Takes the lease with this epoch away from a lost worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Orphan {
    pub epoch: u64,
    pub loss: Loss,
}

/// How a worker was lost, and how often in a row a run may lose one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// Its connection broke a moment ago, and it did not come back. It may still live: a run that would not
    /// be executed again stays with it until it has been silent for long enough.
    pub cut_off: bool,
    /// The run is quarantined when it loses its worker this often in a row without progress.
    pub losses_max: u32,
}

impl Rule for Orphan {
    type Sender = ();
    type Reply = Reclaimed;

    /// Takes the lease away if it is still the one that was seen to be lost.
    fn decide(&self, now: Timestamp, seen: &Aggregate, (): &()) -> Result<Change<Reclaimed>, Rejection> {
        let taken = match seen.run.lease() {
            Some(lease) if seen.run.epoch == self.epoch => take_back(now, seen, lease, self.loss),
            Some(_) | None => None,
        };
        Ok(taken.unwrap_or_else(|| Change::nothing(Reclaimed::Nothing)))
    }

    fn takes_lease(&self) -> Option<&'static str> {
        Some("the worker was declared lost")
    }
}

/// Schedules the next execution, or quarantines a run that takes its workers down. The policy of the steps
/// has no say in how often a run may lose its worker; it judges the steps that are known to have begun, each
/// of which has died in one attempt. None when the worker was only cut off and the run would not be executed
/// again.
pub fn take_back(now: Timestamp, seen: &Aggregate, lease: &Lease, loss: Loss) -> Option<Change<Reclaimed>> {
    let run = &seen.run;
    let crashes = run.crashes.saturating_add(1);
    let quarantined = crashes >= loss.losses_max;
    let seed = backoff_seed(&[run.id.0.as_bytes()]);
    let at = match loss.cut_off && crashes == 1 {
        true => now,
        false => now.plus_ms(run.options.retry.delay_ms(crashes, seed)),
    };
    let failure = Failure::new(WORKER_LOST, &format!("worker {} was lost", lease.worker));
    let (died, any_final) = running_steps(now, seen, &failure, at);
    if loss.cut_off && (quarantined || any_final) {
        return None;
    }
    let retry_at = (!quarantined).then_some(at);
    let lost = EventKind::LeaseLost { worker: lease.worker, epoch: run.epoch, retry_at };
    let mut change = Change {
        run: None,
        events: died.into_iter().chain([lost]).map(|event| (event, None)).collect(),
        reply: Reclaimed::TakenBack { at: retry_at },
        follow: vec![],
    };
    if quarantined {
        let by = Name::from("quarantine");
        let why = format!("its worker was lost {crashes} times in a row without progress");
        let state = State::Paused { by: by.clone(), why: why.clone(), since: now };
        change.run = Some(Run { state, crashes, ..run.clone() });
        change.events.push((EventKind::RunPaused { by, why }, None));
        // Somebody must hear of it; should the run fail later, the handler that exists is found by its id.
        ending::with_handler(seen, &mut change);
    } else {
        let state = State::retry(None, crashes, at, failure);
        change.run = Some(Run { state, crashes, ..run.clone() });
    }
    Some(change)
}

/// What becomes of the steps that were being executed, and whether one of them has failed for good. A step's
/// own attempts count; what all steps of the run share is not used up by a worker. A retry waits for nothing
/// but the run's own next execution.
fn running_steps(
    now: Timestamp,
    seen: &Aggregate,
    failure: &Failure,
    next_at: Timestamp,
) -> (Vec<EventKind>, bool) {
    let mut running: Vec<&Step> =
        seen.open_steps().filter(|step| matches!(step.state, StepState::Running { .. })).collect();
    running.sort_by_key(|step| (step.position, step.path.clone()));
    let (mut events, mut any_final) = (Vec::new(), false);
    for step in running {
        let StepState::Running { since, policy, .. } = &step.state else { continue };
        let named = StepRef { path: step.path.clone(), position: step.position };
        let elapsed_ms = now.remaining_ms(*since);
        let policy =
            RetryPolicy { run_retries_max: Some(-1), run_retry_budget_ms: Some(-1), ..policy.clone() };
        let (mut event, reply) = fail_step::judge(now, seen, &named, (failure, elapsed_ms), &policy);
        any_final |= matches!(reply, Attempted::Final { .. });
        if let EventKind::StepFailed { retry_at: Some(retry_at), .. } = &mut event {
            *retry_at = next_at;
        }
        events.push(event);
    }
    (events, any_final)
}
