//! Retention: runs that ended long ago are deleted, a few at a time, whenever the store has nothing better to do.

use std::time::Duration;

use kagzi_store::SweepKind;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::{Engine, settings::millis};

/// How often to look. Nobody misses a run that goes a minute later.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// After a turn that deleted something, the store gets nine times as long for its work; and the longer there is more to
/// delete the less, down to as long. Otherwise a server that ends more runs than it may delete grows for ever.
const YIELD_MAX: u32 = 9;
/// Turns in a row after which the share of deleting grows by a step.
const PATIENCE: u32 = 20;
/// And at least this, so that commands collect.
const PAUSE_MIN: Duration = Duration::from_millis(10);

/// Runs until told to stop. Any number of servers may: each passes over what another deletes at that moment.
pub async fn run(engine: Engine, stop: CancellationToken) {
    // Without a word of the server's, namespaces still have their own.
    let kind = SweepKind::Retention { keep_ms: engine.settings().retention.map(millis) };
    let (mut deleted, mut turns) = (0, 0_u32);
    loop {
        let now = engine.clock().now();
        let began = tokio::time::Instant::now();
        let more = match engine.store().sweep(kind).await {
            Ok(swept) => {
                deleted += swept.count;
                swept.more
            }
            Err(error) => {
                warn!(%error, "could not delete old runs, trying again");
                false
            }
        };
        if more {
            turns += 1;
            let share = YIELD_MAX.saturating_sub(turns / PATIENCE).max(1);
            let pause = (began.elapsed() * share).max(PAUSE_MIN);
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => continue,
            }
        }
        turns = 0;
        if deleted > 0 {
            info!(runs = deleted, "runs past their retention were deleted");
            deleted = 0;
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = engine.clock().sleep_until(now + LOOK_EVERY) => {}
        }
    }
}
