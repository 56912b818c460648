//! One function decides every command; one file holds each rule.
//!
//! | status \ command | worker's writes | Lease | Cancel, Terminate | Resume | Reopen | Expire | Orphan |
//! |---|---|---|---|---|---|---|---|
//! | PENDING, SLEEPING | refused: not leased | when due → RUNNING | → CANCELLED, FAILED | retrying → due now | refused | at the deadline → TIMED_OUT | nothing |
//! | RUNNING | when the epoch matches | refused | → CANCELLED, FAILED | refused | refused | step or lease over → retry, or quarantine | → retry, or quarantine |
//! | PAUSED | refused: not leased | refused | → CANCELLED, FAILED | → PENDING | refused | at the deadline → TIMED_OUT | nothing |
//! | ended | refused, except a repeat of what is recorded | refused | told how it ended | refused | not COMPLETED → PENDING | nothing | nothing |
//!
//! The full table is the reviewed snapshot in `tests/snapshots`.

mod begin_step;
mod block;
mod cancel;
mod close_step;
mod complete;
mod ending;
mod expire;
mod fail;
mod fail_step;
mod guard;
mod lease;
mod note_handler;
mod orphan;
mod park;
mod progress;
mod record_step;
mod record_steps;
mod release;
mod renew;
mod reopen;
mod resume;
mod set_label;
mod sleep;
mod sleep_over;
mod start;
mod terminate;

use crate::{Aggregate, Change, Command, Payload, Rejection, Timestamp};

/// Decides one command. `seen` is the run it names; for [`Command::Start`] it is the run that already has the
/// business id, with its input.
pub fn decide(
    now: Timestamp,
    seen: Option<&Aggregate>,
    input: Option<&Payload>,
    command: &Command,
) -> Result<Change, Rejection> {
    if let Command::Start(start) = command {
        return start::decide(now, seen, input, start);
    }
    let Some(seen) = seen.filter(|seen| seen.run.namespace == *command.namespace()) else {
        return Err(Rejection::NotFound { run: command.run(), namespace: command.namespace().clone() });
    };
    match command {
        Command::Start(_) => unreachable!("decided above"),
        Command::Lease { worker, until, .. } => lease::decide(now, seen, *worker, *until),
        Command::BeginStep { lease, step, timeout_ms, policy } => {
            begin_step::decide(now, seen, lease, step, (*timeout_ms, policy))
        }
        Command::Progress { lease, step, progress } => progress::decide(seen, lease, step, progress),
        Command::RecordStep { lease, step, attempt, result, elapsed_ms } => {
            record_step::decide(seen, lease, step, (*attempt, *elapsed_ms), result)
        }
        Command::RecordSteps { lease, steps } => record_steps::decide(seen, lease, steps),
        Command::CloseStep { lease, step } => close_step::decide(seen, lease, step),
        Command::FailStep { lease, step, attempt, failure, policy, elapsed_ms, park } => {
            let (attempt, elapsed_ms, park) = (*attempt, *elapsed_ms, *park);
            let failed = fail_step::Failed { step, attempt, failure, policy, elapsed_ms, park };
            fail_step::decide(now, seen, lease, failed)
        }
        Command::Sleep { lease, step, duration_ms, park } => {
            sleep::decide(now, seen, lease, step, (*duration_ms, *park))
        }
        Command::SleepOver { lease, step } => sleep_over::decide(now, seen, lease, step),
        Command::SetLabel { lease, step, name, value } => set_label::decide(seen, lease, step, (name, value)),
        Command::Complete { lease, steps, output } => complete::decide(now, seen, lease, steps, output),
        Command::Fail { lease, failure, step } => fail::decide(now, seen, lease, (failure, step.as_ref())),
        Command::Park { lease, waits } => park::decide(now, seen, lease, waits),
        Command::Release { lease, why } => release::decide(now, seen, lease, why),
        Command::Block { lease, message } => block::decide(now, seen, lease, message),
        Command::Renew { lease, until } => renew::decide(seen, lease, *until),
        Command::Orphan { epoch, loss, .. } => orphan::decide(now, seen, *epoch, *loss),
        Command::Expire { losses_max, .. } => expire::decide(now, seen, *losses_max),
        Command::Cancel { reason, .. } => cancel::decide(now, seen, reason),
        Command::Terminate { reason, .. } => terminate::decide(now, seen, reason),
        Command::Resume { request, .. } => resume::decide(now, seen, request.as_ref()),
        Command::Reopen { from, request, .. } => reopen::decide(now, seen, from.as_ref(), request.as_ref()),
        Command::NoteHandler { handler, outcome, .. } => note_handler::decide(seen, *handler, outcome),
    }
}
