//! A durable sleep: the run is parked, and no worker is needed until it is due.

use std::time::Duration;

use kagzi_proto::v1::{self, StepStatus, report};

use crate::retry_policy::{from_millis, millis};
use crate::run::context::Called;
use crate::run::state::RunEnd;
use crate::run::step::{never, wait};
use crate::run::uplink::Verdict;

pub(crate) async fn run_sleep(called: Called, duration: Duration) -> anyhow::Result<()> {
    let Called { run, step, recorded } = called;
    let mut operation = run.activity.begin();
    let mut remaining = match recorded {
        Some(entry) => match entry.status() {
            StepStatus::Completed => return Ok(()),
            StepStatus::Sleeping => from_millis(entry.remaining_ms),
            status @ (StepStatus::Pending
            | StepStatus::Running
            | StepStatus::Failed
            | StepStatus::Unspecified) => {
                let (path, position) = (&step.path, step.position);
                let status = status.as_str_name();
                let message = format!("recorded {path} at position {position} as {status}, got a sleep");
                never(run.halt_here(RunEnd::Blocked(message)).await)
            }
        },
        None => {
            run.trailing.settled().await;
            let scheduled = v1::SleepScheduled { step: Some(step.clone()), duration_ms: millis(duration) };
            match run.submit(report::Body::SleepScheduled(scheduled)).await {
                Verdict::Sleeping { remaining } => remaining,
                Verdict::Committed => duration,
                verdict @ (Verdict::Retry { .. } | Verdict::Final { .. } | Verdict::Refused { .. }) => {
                    never(run.refuse("a sleep", verdict).await)
                }
            }
        }
    };
    // Zero: due at the claim, or at once, and the server knows that it is over.
    while !remaining.is_zero() {
        wait(&mut operation, remaining).await;
        let over = v1::SleepOver { step: Some(step.clone()) };
        match run.submit(report::Body::SleepOver(over)).await {
            Verdict::Committed => return Ok(()),
            // This machine's clock runs fast: the server's decides, so the rest is waited for too.
            Verdict::Sleeping { remaining: rest } => remaining = rest,
            verdict @ (Verdict::Retry { .. } | Verdict::Final { .. } | Verdict::Refused { .. }) => {
                never(run.refuse("the end of a sleep", verdict).await)
            }
        }
    }
    Ok(())
}
