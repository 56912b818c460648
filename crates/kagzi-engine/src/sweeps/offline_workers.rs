//! Workers that have been offline for long are forgotten.

use std::time::Duration;

use kagzi_store::{StoreError, SweepKind};
use tracing::info;

use super::{Sweep, When};
use crate::{Engine, settings::millis};

/// How often to look. They are days old; a minute more does not matter.
const LOOK_EVERY: Duration = Duration::from_secs(60);

pub struct OfflineWorkers;

impl Sweep for OfflineWorkers {
    const NAME: &'static str = "offline_workers";
    const JITTER: Duration = Duration::from_secs(5);

    fn first(&self, engine: &Engine) -> When {
        When::In(engine.settings().stale_after)
    }

    async fn round(&mut self, engine: &Engine) -> Result<When, StoreError> {
        let before = engine.clock().now().plus_ms(-millis(engine.settings().forget_workers_after));
        loop {
            let swept = engine.store().sweep(SweepKind::OfflineWorkers { before }).await?;
            if swept.count > 0 {
                info!(workers = swept.count, "forgot workers that were offline for long");
            }
            if !swept.more {
                return Ok(When::In(LOOK_EVERY));
            }
        }
    }

    fn failed(&mut self, _: &Engine, _: &StoreError) -> When {
        When::In(LOOK_EVERY)
    }
}
