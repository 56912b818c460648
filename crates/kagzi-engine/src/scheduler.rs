//! Fires schedules: one sleeping task per server, armed at the earliest time that any schedule has something to do.
//! It is safe on all servers at once: each schedule is fired by whoever has its row first.

use std::time::Duration;

use kagzi_store::{StoreError, SweepKind};
use tokio_util::sync::CancellationToken;
use tracing::{debug, error};

use crate::{Engine, SchedulerSettings};

/// When another server is firing what is due, look again after this long: should it die, nothing is late by more.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Runs until told to stop. An error is reported and tried again; it never ends the scheduler.
pub async fn run(engine: Engine, stop: CancellationToken) {
    loop {
        let now = engine.clock().now();
        // The poll is the truth: hints of other servers may be lost.
        let mut wake_at = now + engine.settings().scheduler.interval;
        match fire(&engine).await {
            Ok(Some(next_at)) => {
                // After the clock was set back the calendar is behind the time by which this task sleeps.
                let left = next_at - engine.clock().calendar();
                let pause = if left.is_zero() { LOOK_AGAIN } else { left };
                wake_at = wake_at.min(engine.clock().now() + pause);
            }
            Ok(None) => {}
            Err(error) => error!(%error, "schedules could not be fired, trying again"),
        }
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = engine.clock().sleep_until(wake_at) => break,
                sooner = engine.hub().schedule_before(wake_at) => wake_at = sooner,
            }
        }
    }
}

/// Fires what is due, and says when the next schedule has something to do.
async fn fire(engine: &Engine) -> Result<Option<kagzi_model::Timestamp>, StoreError> {
    let SchedulerSettings { batch_size, max_workflows_per_tick, .. } = engine.settings().scheduler;
    let kind = SweepKind::Schedules { schedules_max: batch_size, runs_max: max_workflows_per_tick };
    loop {
        let swept = engine.store().sweep(kind).await?;
        if swept.count > 0 {
            debug!(runs = swept.count, "schedules fired");
        }
        if !swept.more {
            return Ok(swept.next_at);
        }
    }
}
