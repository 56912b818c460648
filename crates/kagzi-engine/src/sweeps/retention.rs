//! Retention: runs that ended long ago are deleted, a few at a time, whenever the store has nothing better to
//! do. Any number of servers may do it: each passes over what another deletes at that moment.

use std::time::Duration;

use kagzi_store::{StoreError, SweepKind};
use tracing::info;

use super::{Sweep, When};
use crate::{Engine, settings::millis};

/// How often to look. Nobody misses a run that goes a minute later.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// After a turn that deleted something, the store gets nine times as long for its work; and the longer there
/// is more to delete the less, down to as long. Otherwise a server that ends more runs than it may delete
/// grows for ever.
const YIELD_MAX: u32 = 9;
/// Turns in a row after which the share of deleting grows by a step.
const PATIENCE: u32 = 20;
/// And at least this, so that commands collect.
const PAUSE_MIN: Duration = Duration::from_millis(10);

/// What was deleted since the last time that nothing was left to delete, and in how many turns.
#[derive(Default)]
pub struct Retention {
    deleted: usize,
    turns: u32,
}

impl Sweep for Retention {
    fn name(&self) -> &'static str {
        "retention"
    }

    async fn round(&mut self, engine: &Engine) -> Result<When, StoreError> {
        let (now, began) = (engine.clock().now(), tokio::time::Instant::now());
        // Without a word of the server's, namespaces still have their own.
        let keep_ms = engine.settings().retention.map(millis);
        let swept = engine.store().sweep(SweepKind::Retention { keep_ms }).await?;
        self.deleted += swept.count;
        if swept.more {
            self.turns += 1;
            let share = YIELD_MAX.saturating_sub(self.turns / PATIENCE).max(1);
            return Ok(When::Pause((began.elapsed() * share).max(PAUSE_MIN)));
        }
        if self.deleted > 0 {
            info!(runs = self.deleted, "runs past their retention were deleted");
        }
        *self = Retention::default();
        Ok(When::At(now + LOOK_EVERY))
    }

    fn failed(&mut self, engine: &Engine, _: &StoreError) -> When {
        When::At(engine.clock().now() + LOOK_EVERY)
    }
}
