//! One function decides every command; one file holds each act and its rule.
//!
//! | status \ act | reports of a worker | Claim | Cancel, Terminate | Resume | Retry | Expire | Orphan |
//! |---|---|---|---|---|---|---|---|
//! | PENDING, SLEEPING | refused: not leased | when due → RUNNING | → CANCELLED, FAILED | retrying → due now | as Resume | at the deadline → TIMED_OUT | nothing |
//! | RUNNING | when the epoch matches | refused | → CANCELLED, FAILED | refused | refused | step or lease over → retry, or quarantine | → retry, or quarantine |
//! | PAUSED | refused: not leased | refused | → CANCELLED, FAILED | → PENDING | as Resume | at the deadline → TIMED_OUT | nothing |
//! | ended | refused, except a repeat of what is recorded | refused | told how it ended | refused | not COMPLETED → PENDING | nothing | nothing |
//!
//! The full table is the reviewed snapshot in `tests/decision_table/snapshots`.

pub mod ask;
pub mod await_or_park;
pub mod await_signal;
pub mod beat_promise;
pub mod begin_step;
pub mod block;
pub mod cancel;
pub mod child_ended;
pub mod claim;
pub mod close_step;
pub mod complete;
pub mod complete_promise;
pub mod continue_run;
mod ending;
pub mod expire;
pub mod fail;
pub mod fail_step;
pub mod hear_event;
mod history_bound;
mod lease_guard;
pub mod make_promise;
pub mod note_handler;
pub mod orphan;
pub mod park;
pub mod progress;
pub mod record_step;
pub mod record_steps;
pub mod release;
pub mod renew;
pub mod resume;
pub mod retry;
pub mod set_label;
pub mod set_value;
pub mod signal;
pub mod sleep;
pub mod sleep_over;
mod start;
pub mod start_child;
pub mod tell_answer;
pub mod terminate;

use crate::{Act, Aggregate, Blocked, Change, Command, Payload, Rejection, Report, Timestamp};

/// Decides one command. `seen` is the run it names; for [`Act::Start`] it is the run that already has the
/// business id, with its input.
pub fn decide(
    now: Timestamp,
    seen: Option<&Aggregate>,
    input: Option<&Payload>,
    command: &Command,
) -> Result<Change, Rejection> {
    let Command { run, act } = command;
    let known = || match seen {
        Some(seen) if seen.run.namespace == run.namespace => Ok(seen),
        Some(_) | None => Err(Rejection::NotFound { run: run.id, namespace: run.namespace.clone() }),
    };
    match act {
        Act::Start(start) => start::decide(now, seen, input, start).map(Change::answered),
        Act::Report { epoch, report } => reported(now, known()?, *epoch, report),
        Act::Order { by, order } => {
            let seen = known()?;
            match order.repeat(now, seen) {
                Some(reply) => Ok(Change::nothing(reply)),
                None => order.decide(now, seen, by),
            }
        }
        Act::Duty(duty) => {
            let seen = known()?;
            match duty.repeat(now, seen) {
                Some(reply) => Ok(Change::nothing(reply)),
                None => duty.decide(now, seen, &()),
            }
        }
    }
}

/// A worker's report: a repeat is recognised as long as nobody else was given the run, everything else needs
/// the lease. Where it shows that code and record disagree, the run is paused in the same commit.
fn reported(now: Timestamp, seen: &Aggregate, epoch: u64, report: &Report) -> Result<Change, Rejection> {
    if seen.run.epoch == epoch
        && let Some(reply) = report.repeat(now, seen)
    {
        return Ok(Change::nothing(reply));
    }
    let lease = lease_guard::held(seen, epoch)?;
    // Words of progress and values are left out when there is no room, which is their own rule. And a run
    // whose history is full can always begin an empty one.
    if !matches!(report, Report::Progress(_) | Report::SetValue(_) | Report::Continue(_)) {
        history_bound::check(seen, report.payload_bytes())?;
    }
    match report.decide(now, seen, lease) {
        Err(refusal @ Rejection::StepMismatch { .. }) => {
            let why = refusal.to_string();
            Ok(block::paused(now, seen, why, Blocked { refusal }).answered())
        }
        decided => decided,
    }
}
