//! What happens when things fail, from the SDK through the engine and back, on a clock that tests move.

mod deadlines;
mod dropped_steps;
mod failure_handlers;
mod operators;
mod panics;
mod progress;
mod run_retries;
mod step_retries;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kagzi::RetryPolicy;
use kagzi::client::RunHandle;
use kagzi::testing::TestEngine;

/// How often something was executed. Shared with the workflow functions of a test.
#[derive(Clone, Default)]
struct Count(Arc<AtomicU32>);

impl Count {
    /// Counts, and answers with the number so far.
    fn up(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn get(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// At once and without limits that a test did not ask for.
fn at_once() -> RetryPolicy {
    RetryPolicy::default().initial_interval(Duration::ZERO).maximum_interval(Duration::ZERO)
}

async fn start(engine: &TestEngine, workflow_type: &str) -> RunHandle {
    engine.client().workflow(workflow_type, "q", ()).await.unwrap()
}
