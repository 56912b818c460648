//! Fires schedules: armed at the earliest time that any schedule has something to do. It is safe on all
//! servers at once: each schedule is fired by whoever has its row first.

use std::time::Duration;

use kagzi_store::{StoreError, SweepKind};
use tracing::debug;

use super::{Sweep, When};
use crate::{Engine, SchedulerSettings};

/// When another server is firing what is due, look again after this long: should it die, nothing is late by
/// more.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

pub struct Schedules;

impl Sweep for Schedules {
    fn name(&self) -> &'static str {
        "schedules"
    }

    async fn round(&mut self, engine: &Engine) -> Result<When, StoreError> {
        // The poll is the truth: hints of other servers may be lost.
        let poll_at = engine.clock().now() + engine.settings().scheduler.interval;
        let SchedulerSettings { batch_size, max_workflows_per_tick, .. } = engine.settings().scheduler;
        let kind = SweepKind::Schedules { schedules_max: batch_size, runs_max: max_workflows_per_tick };
        let next_at = loop {
            let swept = engine.store().sweep(kind).await?;
            if swept.count > 0 {
                debug!(runs = swept.count, "schedules fired");
            }
            if !swept.more {
                break swept.next_at;
            }
        };
        let Some(next_at) = next_at else { return Ok(When::At(poll_at)) };
        // After the clock was set back the calendar is behind the time by which this sweep sleeps.
        let left = next_at - engine.clock().calendar();
        let pause = if left.is_zero() { LOOK_AGAIN } else { left };
        Ok(When::At(poll_at.min(engine.clock().now() + pause)))
    }

    fn failed(&mut self, engine: &Engine, _: &StoreError) -> When {
        When::At(engine.clock().now() + engine.settings().scheduler.interval)
    }

    async fn sooner(&self, engine: &Engine, than: When) -> When {
        match than {
            When::At(at) => When::At(engine.hub().schedule_before(at).await),
            When::In(_) | When::Pause(_) | When::Called => std::future::pending().await,
        }
    }
}
