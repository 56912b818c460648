//! Orphan: the worker is gone, so the run is taken back.

use super::ending::{self, Ending};
use crate::{
    Aggregate, Change, EventKind, Failure, Lease, Name, Rejection, Reply, Run, State, Timestamp,
    backoff_seed, limits::CRASHES_MAX,
};

/// Takes the lease away if it is still the one that was seen to be lost.
pub fn decide(now: Timestamp, seen: &Aggregate, epoch: u64) -> Result<Change, Rejection> {
    match seen.run.lease() {
        Some(lease) if seen.run.epoch == epoch => Ok(take_back(now, seen, lease)),
        Some(_) | None => Ok(Change::nothing(Reply::Done { already: true })),
    }
}

/// Schedules the next execution by the run's policy, fails a run that is out of attempts, or quarantines one
/// that takes its workers down.
pub fn take_back(now: Timestamp, seen: &Aggregate, lease: &Lease) -> Change {
    let run = &seen.run;
    let crashes = run.crashes + 1;
    let lost = |retry_at| EventKind::LeaseLost { worker: lease.worker, epoch: run.epoch, retry_at };
    let failure = Failure::new("WORKER_LOST", &format!("worker {} was lost", lease.worker));
    let limit = run.options.retry.maximum_attempts;
    if limit.is_some_and(|limit| limit >= 0 && crashes >= limit.unsigned_abs()) {
        let mut change = ending::end(now, seen, Ending::Failed, failure, Reply::Orphaned { at: None });
        change.events.insert(0, (lost(None), None));
        return change;
    }
    if crashes >= CRASHES_MAX {
        let by = Name::from("quarantine");
        let why = format!("its worker was lost {crashes} times in a row without progress");
        let state = State::Paused { by: by.clone(), why: why.clone(), since: now };
        let mut change = Change {
            run: Some(Run { state, crashes, ..run.clone() }),
            events: vec![(lost(None), None), (EventKind::RunPaused { by, why }, None)],
            reply: Reply::Orphaned { at: None },
            follow: vec![],
        };
        // Somebody must hear of it; should the run fail later, the handler that exists is found by its id.
        ending::with_handler(seen, &mut change);
        return change;
    }
    let seed = backoff_seed(&[run.id.0.as_bytes()]);
    let at = now.plus_ms(run.options.retry.delay_ms(crashes, seed));
    let state = State::Retry { step: None, attempt: crashes, at, failure };
    Change::new(Run { state, crashes, ..run.clone() }, lost(Some(at)), Reply::Orphaned { at: Some(at) })
}
