//! Housekeeping: leases that ran out, deadlines that passed, workers that were lost.

use std::time::Duration;

use kagzi_model::Timestamp;
use kagzi_store::{Clock, Leap, StoreError, SweepKind};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::{Engine, settings::millis};

/// Longest pause between two looks. Deadlines and leases have their own armed times; this bounds how late a
/// lost worker is noticed.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// How often to look for workers to forget. They are days old; a minute more does not matter.
const FORGET_EVERY: Duration = Duration::from_secs(60);

/// A step that runs longer than this is written down.
const LONG_STEP_MS: i64 = 1_000;
/// Steps written down in one commit.
const WRITE_LEN_MAX: usize = 500;

/// Runs until told to stop. An error is reported and tried again; it never ends the sweeper.
pub async fn run(engine: Engine, stop: CancellationToken) {
    // After a start or an outage of the store, workers get the time to be heard of before they count as lost.
    let grace = || Quiet::begin(engine.clock(), engine.settings().stale_after);
    let mut quiet = grace();
    let mut forget_at = quiet.until;
    let mut presence = Presence::new(PAUSE_MAX + engine.settings().heartbeat_interval);
    let (mut leaps, mut leapt) = (engine.clock().leaps(), engine.clock().leapt());
    let mut leap: Option<Leap> = None;
    loop {
        let mut now = engine.clock().now();
        if let Some(away) = presence.was_away() {
            // The process was stopped, or its machine was: the heartbeats of that time still wait to be read.
            warn!(?away, "the server itself was away, nobody counts as lost yet");
            quiet = grace();
        }
        // Asked after the time: a leap that this very reading found must be seen.
        if engine.clock().leaps() != leaps {
            warn!("time leapt forward, nobody counts as lost yet");
            (leaps, quiet, now) = (engine.clock().leaps(), grace(), engine.clock().now());
            let by = engine.clock().leapt().saturating_sub(leapt);
            leapt += by;
            // A second leap adds to the first: what began between the two has a little more than it should.
            leap = Some(Leap { at: now, by: leap.map_or(by, |before| before.by + by) });
        }
        let steady = engine.clock().steady();
        let mut wake_at = now + PAUSE_MAX;
        // Steps that have run for a second are worth a line.
        write_running_steps(&engine, now.plus_ms(-LONG_STEP_MS)).await;
        if steady >= forget_at {
            forget_workers(&engine, now).await;
            forget_at = steady + FORGET_EVERY;
        }
        let swept = if steady >= quiet.until {
            round(&engine, now, leap).await
        } else {
            quiet_round(&engine, now, &quiet).await.map(|()| Some(now + (quiet.until - steady)))
        };
        match swept {
            // What is over and was left alone is looked at again in the usual pace.
            Ok(Some(next_at)) if next_at > now => wake_at = wake_at.min(next_at),
            Ok(Some(_) | None) => {}
            Err(error) => {
                error!(%error, "sweep failed, trying again");
                // Only while the store is away nobody can be heard of. What is wrong with one row is no reason to keep
                // waiting for workers that are lost.
                if error.is_away() {
                    quiet = grace();
                }
            }
        }
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = engine.clock().sleep_until(wake_at) => break,
                sooner = engine.hub().due_before(wake_at) => wake_at = sooner,
                () = tokio::time::sleep(PAUSE_MAX) => presence.tell(),
            }
        }
    }
}

/// The time in which nobody counts as lost. Its end is in steady time, so that no correction of the clock cuts it short.
struct Quiet {
    since: Timestamp,
    until: Duration,
}

impl Quiet {
    fn begin(clock: &dyn Clock, length: Duration) -> Quiet {
        Quiet { since: clock.now(), until: clock.steady().saturating_add(length) }
    }
}

/// Whether this process runs at all. Real time, apart from the injected clock: that one may stand still for as long
/// as a test likes, and leap, without anybody having been away.
struct Presence {
    told: Instant,
    away: Option<Duration>,
    gap_max: Duration,
}

impl Presence {
    fn new(gap_max: Duration) -> Presence {
        Presence { told: Instant::now(), away: None, gap_max }
    }

    /// To be called at least every [`PAUSE_MAX`].
    fn tell(&mut self) {
        let gap = std::mem::replace(&mut self.told, Instant::now()).elapsed();
        if gap > self.gap_max {
            self.away = Some(gap);
        }
    }

    /// For how long nobody called, if that was too long.
    fn was_away(&mut self) -> Option<Duration> {
        self.tell();
        self.away.take()
    }
}

/// What has no grace: a deadline is the caller's word, and a worker that said just now that it is in a step is not
/// lost, so the step's time counts.
async fn quiet_round(engine: &Engine, now: Timestamp, quiet: &Quiet) -> Result<(), StoreError> {
    engine.store().sweep(SweepKind::NoGrace { since: quiet.since }).await?;
    let overdue =
        engine.hub().running.overdue(now, quiet.since, (WRITE_LEN_MAX, engine.settings().worker_losses_max));
    if !overdue.is_empty() {
        engine.store().apply(overdue).await?;
    }
    Ok(())
}

/// Writes down steps that began before `before` and still run. An error is harmless: the worker's own timeout still
/// holds.
pub(crate) async fn write_running_steps(engine: &Engine, before: Timestamp) {
    loop {
        let commands = engine.hub().running.to_write(before, WRITE_LEN_MAX);
        if commands.is_empty() {
            return;
        }
        if let Err(error) = engine.store().apply(commands).await {
            warn!(%error, "could not write down running steps");
            return;
        }
    }
}

/// Forgets workers that have been offline for long. An error is harmless: the next look finds them.
async fn forget_workers(engine: &Engine, now: Timestamp) {
    let before = now.plus_ms(-millis(engine.settings().forget_workers_after));
    loop {
        match engine.store().sweep(SweepKind::OfflineWorkers { before }).await {
            Ok(swept) => {
                if swept.count > 0 {
                    info!(workers = swept.count, "forgot workers that were offline for long");
                }
                if !swept.more {
                    return;
                }
            }
            Err(error) => {
                warn!(%error, "could not forget old workers");
                return;
            }
        }
    }
}

async fn round(engine: &Engine, now: Timestamp, leap: Option<Leap>) -> Result<Option<Timestamp>, StoreError> {
    let before = now.plus_ms(-millis(engine.settings().stale_after));
    loop {
        let swept = engine.store().sweep(SweepKind::StaleWorkers { before }).await?;
        if swept.count > 0 {
            warn!(workers = swept.count, "workers lost, their runs are taken over");
        }
        if !swept.more {
            break;
        }
    }
    loop {
        let swept = engine.store().sweep(SweepKind::Expired { now, leap }).await?;
        if swept.count > 0 {
            warn!(runs = swept.count, "leases or deadlines passed");
        }
        if !swept.more {
            return Ok(swept.next_at);
        }
    }
}
