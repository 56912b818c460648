//! Leases that ran out, deadlines that passed, workers that were lost.

use std::time::Duration;

use kagzi_model::Timestamp;
use kagzi_store::{Clock, Leap, StoreError, SweepKind};
use tokio::time::Instant;
use tracing::warn;

use super::{REMINDED_EVERY, Sweep, When};
use crate::{Engine, settings::millis};

/// Longest pause between two looks. Deadlines and leases have their own armed times; this bounds how late a
/// lost worker is noticed.
const PAUSE_MAX: Duration = REMINDED_EVERY;

/// A step that runs longer than this is written down.
const LONG_STEP_MS: i64 = 1_000;
/// Steps written down in one commit.
const WRITE_LEN_MAX: usize = 500;

/// What it knows from round to round.
pub struct Leases {
    quiet: Quiet,
    presence: Presence,
    leaps: u64,
    leapt: Duration,
    leap: Option<Leap>,
}

impl Leases {
    pub fn new(engine: &Engine) -> Leases {
        Leases {
            quiet: grace(engine),
            presence: Presence::new(PAUSE_MAX + engine.settings().heartbeat_interval),
            leaps: engine.clock().leaps(),
            leapt: engine.clock().leapt(),
            leap: None,
        }
    }
}

/// After a start or an outage of the store, workers get the time to be heard of before they count as lost.
fn grace(engine: &Engine) -> Quiet {
    Quiet::begin(engine.clock(), engine.settings().stale_after)
}

impl Sweep for Leases {
    fn name(&self) -> &'static str {
        "leases"
    }

    async fn round(&mut self, engine: &Engine) -> Result<When, StoreError> {
        let mut now = engine.clock().now();
        if let Some(away) = self.presence.was_away() {
            // The process was stopped, or its machine was: the heartbeats of that time still wait to be read.
            warn!(?away, "the server itself was away, nobody counts as lost yet");
            self.quiet = grace(engine);
        }
        // Asked after the time: a leap that this very reading found must be seen.
        if engine.clock().leaps() != self.leaps {
            warn!("time leapt forward, nobody counts as lost yet");
            (self.leaps, self.quiet, now) = (engine.clock().leaps(), grace(engine), engine.clock().now());
            let by = engine.clock().leapt().saturating_sub(self.leapt);
            self.leapt += by;
            // A second leap adds to the first: what began between the two has a little more than it should.
            self.leap = Some(Leap { at: now, by: self.leap.map_or(by, |before| before.by + by) });
        }
        let steady = engine.clock().steady();
        // Steps that have run for a second are worth a line.
        write_running_steps(engine, now.plus_ms(-LONG_STEP_MS)).await;
        let next_at = if steady >= self.quiet.until {
            round(engine, now, self.leap).await?
        } else {
            quiet_round(engine, now, &self.quiet).await?;
            Some(now + (self.quiet.until - steady))
        };
        // What is over and was left alone is looked at again in the usual pace.
        let next_at = next_at.filter(|next_at| *next_at > now);
        let usual = now + PAUSE_MAX;
        Ok(When::At(next_at.map_or(usual, |next_at| usual.min(next_at))))
    }

    fn failed(&mut self, engine: &Engine, error: &StoreError) -> When {
        // Only while the store is away nobody can be heard of. What is wrong with one row is no reason to
        // keep waiting for workers that are lost.
        if error.is_away() {
            self.quiet = grace(engine);
        }
        When::At(engine.clock().now() + PAUSE_MAX)
    }

    async fn sooner(&self, engine: &Engine, than: When) -> When {
        match than {
            When::At(at) => When::At(engine.hub().due_before(at).await),
            When::In(_) | When::Pause(_) | When::Called => std::future::pending().await,
        }
    }

    fn remind(&mut self) {
        self.presence.tell();
    }
}

/// The time in which nobody counts as lost. Its end is in steady time, so that no correction of the clock
/// cuts it short.
struct Quiet {
    since: Timestamp,
    until: Duration,
}

impl Quiet {
    fn begin(clock: &dyn Clock, length: Duration) -> Quiet {
        Quiet { since: clock.now(), until: clock.steady().saturating_add(length) }
    }
}

/// Whether this process runs at all. Real time, apart from the injected clock: that one may stand still for
/// as long as a test likes, and leap, without anybody having been away.
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

/// What has no grace: a deadline is the caller's word, and a worker that said just now that it is in a step
/// is not lost, so the step's time counts.
async fn quiet_round(engine: &Engine, now: Timestamp, quiet: &Quiet) -> Result<(), StoreError> {
    engine.store().sweep(SweepKind::ExpiredDuringGrace { since: quiet.since }).await?;
    let overdue =
        engine.hub().running.overdue(now, quiet.since, (WRITE_LEN_MAX, engine.settings().worker_losses_max));
    if !overdue.is_empty() {
        engine.store().apply(overdue).await?;
    }
    Ok(())
}

/// Writes down steps that began before `before` and still run. An error is harmless: the worker's own timeout
/// still holds.
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
