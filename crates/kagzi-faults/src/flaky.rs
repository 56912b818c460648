//! The workflow of the load tests: it fails twice, then succeeds, and says how many were executed at once.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use kagzi::{RetryPolicy, WorkflowContext};
use serde::{Deserialize, Serialize};

pub const TYPE: &str = "flaky";
/// The delay after the first failure; it doubles after the second.
pub const INITIAL_MS: u64 = 200;

static RUNNING: AtomicU32 = AtomicU32::new(0);
static RUNNING_MAX: AtomicU32 = AtomicU32::new(0);

/// What a run is asked to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ask {
    /// The first delay, if not [`INITIAL_MS`].
    pub initial_ms: Option<u64>,
    /// Attempts that fail.
    pub failures: u32,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The attempt that succeeded.
    pub attempt: u32,
    /// Most executions of this worker process at one time, so far.
    pub at_once_max: u32,
}

/// One step that fails as often as asked.
pub async fn run(ctx: WorkflowContext, ask: Ask) -> anyhow::Result<Outcome> {
    let policy = RetryPolicy {
        initial_interval: Some(Duration::from_millis(ask.initial_ms.unwrap_or(INITIAL_MS))),
        maximum_interval: Some(Duration::from_secs(3600)),
        ..RetryPolicy::default()
    };
    let flaky = ctx.step("flaky").retry_policy(policy);
    flaky
        .run(|step| async move {
            let _inside = Inside::enter();
            // Others get the chance to be inside at the same time.
            tokio::task::yield_now().await;
            anyhow::ensure!(step.attempt() > ask.failures, "attempt {} fails", step.attempt());
            Ok(Outcome { attempt: step.attempt(), at_once_max: RUNNING_MAX.load(Ordering::SeqCst) })
        })
        .await
}

struct Inside;

impl Inside {
    fn enter() -> Inside {
        let now = RUNNING.fetch_add(1, Ordering::SeqCst) + 1;
        RUNNING_MAX.fetch_max(now, Ordering::SeqCst);
        Inside
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::SeqCst);
    }
}
