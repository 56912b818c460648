//! Delivers published events to the runs that wait for them, armed by whoever publishes one. Any number of
//! servers may do it: each event is delivered by whoever has its row first.

use std::time::Duration;

use kagzi_store::{StoreError, SweepKind};
use tracing::debug;

use super::{Sweep, When};
use crate::Engine;

/// How often to look without being called: for events that another server published before it died, and for
/// those that have expired.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How soon to look again after an error.
const AFTER_ERROR: Duration = Duration::from_millis(500);

pub struct Events;

impl Sweep for Events {
    fn name(&self) -> &'static str {
        "events"
    }

    async fn round(&mut self, engine: &Engine) -> Result<When, StoreError> {
        loop {
            let swept = engine.store().sweep(SweepKind::Events {}).await?;
            if swept.count > 0 {
                debug!(count = swept.count, "published events were delivered, or have expired");
            }
            if !swept.more {
                return Ok(When::At(engine.clock().now() + LOOK_EVERY));
            }
        }
    }

    fn failed(&mut self, engine: &Engine, _: &StoreError) -> When {
        When::At(engine.clock().now() + AFTER_ERROR)
    }

    async fn sooner(&self, engine: &Engine, than: When) -> When {
        match than {
            When::At(at) => When::At(engine.hub().events_before(at).await),
            When::In(_) | When::Pause(_) | When::Called => std::future::pending().await,
        }
    }
}
