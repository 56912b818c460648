//! Orphan: the worker is gone, so the run is taken back.

use crate::{
    Aggregate, Change, EventKind, Failure, Lease, Name, Rejection, Reply, Run, State, Timestamp,
    limits::CRASHES_MAX,
};

/// Takes the lease away if it is still the one that was seen to be lost.
pub fn decide(now: Timestamp, seen: &Aggregate, epoch: u64) -> Result<Change, Rejection> {
    match seen.run.lease() {
        Some(lease) if seen.run.epoch == epoch => Ok(take_back(now, seen, lease)),
        Some(_) | None => Ok(Change::nothing(Reply::Done { already: true })),
    }
}

/// Schedules the next execution by the run's policy, or quarantines a run that takes its workers down.
pub fn take_back(now: Timestamp, seen: &Aggregate, lease: &Lease) -> Change {
    let run = &seen.run;
    let crashes = run.crashes + 1;
    let lost = |retry_at| EventKind::LeaseLost { worker: lease.worker, epoch: run.epoch, retry_at };
    if crashes >= CRASHES_MAX {
        let by = Name::from("quarantine");
        let why = format!("its worker was lost {crashes} times in a row without progress");
        let state = State::Paused { by: by.clone(), why: why.clone(), since: now };
        return Change {
            run: Some(Run { state, crashes, ..run.clone() }),
            events: vec![(lost(None), None), (EventKind::RunPaused { by, why }, None)],
            reply: Reply::Orphaned { at: None },
        };
    }
    let at = now.plus_ms(run.options.retry.delay_ms(crashes));
    let failure = Failure::new("WORKER_LOST", &format!("worker {} was lost", lease.worker));
    let state = State::Retry { step: None, attempt: crashes, at, failure };
    Change::new(Run { state, crashes, ..run.clone() }, lost(Some(at)), Reply::Orphaned { at: Some(at) })
}
