//! Sweeps that only look around from time to time: each asks the store for one kind of housekeeping until
//! there is no more of it, and says what was done.

use std::time::Duration;

use kagzi_store::{StoreError, SweepKind};
use tracing::info;

use super::{Sweep, When};
use crate::{Engine, settings::millis};

/// Every sweep of this kind.
pub const ALL: &[Periodic] = &[Periodic {
    name: "offline_workers",
    // They are days old; a minute more does not matter.
    every: Duration::from_secs(60),
    first: |engine| engine.settings().stale_after,
    kind: |engine| SweepKind::OfflineWorkers {
        before: engine.clock().now().plus_ms(-millis(engine.settings().forget_workers_after)),
    },
    did: "forgot workers that were offline for long",
}];

/// A sweep that looks around from time to time.
pub struct Periodic {
    name: &'static str,
    every: Duration,
    /// How long after the start it looks for the first time.
    first: fn(&Engine) -> Duration,
    kind: fn(&Engine) -> SweepKind,
    /// What was done, for the log, where anything was.
    did: &'static str,
}

impl Sweep for &'static Periodic {
    fn name(&self) -> &'static str {
        self.name
    }

    fn jitter(&self) -> Duration {
        self.every / 12
    }

    fn first(&self, engine: &Engine) -> When {
        When::In((self.first)(engine))
    }

    async fn round(&mut self, engine: &Engine) -> Result<When, StoreError> {
        let kind = (self.kind)(engine);
        loop {
            let swept = engine.store().sweep(kind).await?;
            if swept.count > 0 {
                info!(sweep = self.name, count = swept.count, "{}", self.did);
            }
            if !swept.more {
                return Ok(When::In(self.every));
            }
        }
    }

    fn failed(&mut self, _: &Engine, _: &StoreError) -> When {
        When::In(self.every)
    }
}
