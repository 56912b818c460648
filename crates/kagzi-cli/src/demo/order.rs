//! The workflow of the tour. Its steps leave a mark in a file each time they really run.

use super::step_log::StepLog;
use kagzi::WorkflowContext;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

pub const WORKFLOW_TYPE: &str = "order";
pub const QUEUE: &str = "demo";

/// In order.
pub const STEPS: [&str; 4] = ["reserve", "charge", "ship", "email"];
pub const NAP: Duration = Duration::from_secs(2);

/// The step in which the first worker dies.
pub const FATAL_STEP: &str = "ship";

const GO_FILE: &str = "go";
const GO_POLL: Duration = Duration::from_millis(25);

/// Longer than any tour: a worker that nobody kills must not hang for ever.
const GO_TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    pub order: String,
    pub amount_cents: u64,
}

/// What a step returns and the server records: who did it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    pub step: String,
    pub by_pid: u32,
}

/// What the workflow returns: the recorded results of its steps.
#[derive(Debug, Serialize, Deserialize)]
pub struct Receipt {
    pub order: String,
    pub done: Vec<Done>,
}

/// Reserve, charge, sleep, ship, email.
pub async fn order(ctx: WorkflowContext, input: Order, dir: &Path) -> anyhow::Result<Receipt> {
    let mut done = Vec::new();
    for step in STEPS {
        if step == FATAL_STEP {
            ctx.sleep(NAP).await?;
        }
        done.push(ctx.run(step, perform_step(dir, step)).await?);
    }
    Ok(Receipt { order: input.order, done })
}

/// The body of one step. The first execution of [`FATAL_STEP`] stays in mid-step until its process is killed.
async fn perform_step(dir: &Path, step: &str) -> anyhow::Result<Done> {
    let log = StepLog::in_dir(dir);
    let pid = std::process::id();
    let first_time = log.executions_of(step)?.is_empty();
    log.append(step, pid)?;
    if step == FATAL_STEP && first_time {
        wait_for_go(dir).await?;
    }
    Ok(Done { step: step.to_owned(), by_pid: pid })
}

async fn wait_for_go(dir: &Path) -> anyhow::Result<()> {
    let deadline = Instant::now() + GO_TIMEOUT;
    while !dir.join(GO_FILE).try_exists()? {
        anyhow::ensure!(Instant::now() < deadline, "nobody killed this worker and nobody let it go on");
        tokio::time::sleep(GO_POLL).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_step_leaves_a_mark_each_time_it_runs() {
        let dir = tempfile::tempdir().unwrap();

        perform_step(dir.path(), "reserve").await.unwrap();
        let done = perform_step(dir.path(), "reserve").await.unwrap();

        assert_eq!(done, Done { step: "reserve".into(), by_pid: std::process::id() });
        assert_eq!(StepLog::in_dir(dir.path()).executions_of("reserve").unwrap().len(), 2);
    }

    #[tokio::test]
    async fn the_fatal_step_blocks_only_the_first_time_and_until_told_to_go() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(GO_FILE), "").unwrap();

        let first = perform_step(dir.path(), FATAL_STEP).await;
        std::fs::remove_file(dir.path().join(GO_FILE)).unwrap();
        let second = perform_step(dir.path(), FATAL_STEP).await;

        assert!(first.is_ok() && second.is_ok());
    }
}
