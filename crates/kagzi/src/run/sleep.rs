//! A durable sleep: the run is parked, and no worker is needed until it is due.

use std::time::Duration;

use kagzi_proto::v1::{self, StepStatus, report};

use crate::retry_policy::millis;
use crate::run::call::Called;
use crate::run::state::RunEnd;
use crate::run::step::{never, wait};
use crate::run::turns::{Open, settled};
use crate::run::uplink::Verdict;

pub(crate) async fn run_sleep(called: Called, duration: Duration) -> anyhow::Result<()> {
    let slot = called.slot.clone();
    slot.track(sleep(called, duration)).await
}

async fn sleep(called: Called, duration: Duration) -> anyhow::Result<()> {
    let Called { slot, recorded } = called;
    let (run, step) = (&slot.run, &slot.step);
    let mut remaining = None;
    if let Some(recorded) = recorded {
        match recorded.entry.status() {
            StepStatus::Completed | StepStatus::Sleeping if recorded.place > 0 => {
                slot.released().await;
                return Ok(());
            }
            StepStatus::Sleeping => remaining = Some(run.left_of(recorded.entry.remaining_ms)),
            status @ (StepStatus::Pending
            | StepStatus::Running
            | StepStatus::Completed
            | StepStatus::Failed
            | StepStatus::Waiting
            | StepStatus::Unspecified) => {
                let (path, position) = (&step.path, step.position);
                let status = status.as_str_name();
                let message = format!("recorded {path} at position {position} as {status}, got a sleep");
                never(run.halt_here(RunEnd::Blocked(message)).await)
            }
        }
    }
    let _open = Open::new(&slot);
    settled(&slot).await;
    let mut remaining = match remaining {
        Some(deadline) => deadline.saturating_duration_since(tokio::time::Instant::now()),
        None => {
            let scheduled = v1::SleepScheduled { step: Some(step.clone()), duration_ms: millis(duration) };
            match run.submit(report::Body::SleepScheduled(scheduled)).await {
                Verdict::Sleeping { remaining } => remaining,
                Verdict::Committed => duration,
                verdict @ (Verdict::Retry { .. }
                | Verdict::Final { .. }
                | Verdict::Waited(_)
                | Verdict::ChildBegan(_)
                | Verdict::Refused { .. }) => never(run.refuse("a sleep", verdict).await),
            }
        }
    };
    // Its end has a place in the order of all that the function is told of, so the server is asked even where
    // no time is left to wait for.
    loop {
        wait(&slot, remaining).await;
        run.ask(&slot, report::Body::SleepOver(v1::SleepOver { step: Some(step.clone()) }));
        match slot.heard().await {
            Verdict::Committed => return Ok(()),
            // This machine's clock runs fast: the server's decides, so the rest is waited for too.
            Verdict::Sleeping { remaining: rest } => remaining = rest,
            verdict @ (Verdict::Retry { .. }
            | Verdict::Final { .. }
            | Verdict::Waited(_)
            | Verdict::ChildBegan(_)
            | Verdict::Refused { .. }) => never(run.refuse("the end of a sleep", verdict).await),
        }
    }
}
