//! The database's clock decides, so that servers whose clocks differ agree on what is due.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use kagzi_model::Timestamp;
use kagzi_store::{Carried, Clock, Correction, LEAP_MIN, StoreError, SystemClock};
use parking_lot::Mutex;
use tokio::time::timeout;
use tokio_postgres::Config;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{info, warn};

use crate::{
    error::from_postgres,
    options::{self, PostgresOptions},
    row,
    session::{Purpose, Session, too_slow},
};

// Microseconds, exactly: a float of seconds would lose some.
const DATABASE_TIME: &str = "SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint";

const MEASURE_EVERY: Duration = Duration::from_secs(30);
/// How often to ask this machine whether it was suspended; then the database is asked at once.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Of several answers the quickest says most: its error is at most half its round trip.
const SAMPLES: usize = 5;
/// More than this is worth an operator's look: leases and timers still agree, logs do not.
const SKEW_WARN_MS: i64 = 1000;

/// The database's time, carried by this machine's steady time between two measurements. Never goes back and
/// never stands still: when the database's clock is set back, or another host with a slower one takes over,
/// it runs slowly until that has caught up.
#[derive(Clone)]
pub struct PostgresClock {
    inner: Arc<Inner>,
    /// Ends the measuring with the last clock.
    _stop: Arc<DropGuard>,
}

struct Inner {
    local: Arc<dyn Clock>,
    config: Config,
    options: PostgresOptions,
    /// None before the first measurement.
    state: Mutex<Option<State>>,
}

#[derive(Clone, Copy)]
struct State {
    carried: Carried,
    leaps: u64,
    leapt: Duration,
    /// The log says once that time runs slowly, and once that it has caught up.
    slow: bool,
}

impl PostgresClock {
    /// Measures the database's clock now, and again every half minute.
    pub async fn start(url: &str, options: &PostgresOptions) -> Result<Self, StoreError> {
        PostgresClock::start_from(Arc::new(SystemClock::new()), url, options).await
    }

    /// The same over another clock than this machine's.
    pub async fn start_from(
        local: Arc<dyn Clock>,
        url: &str,
        options: &PostgresOptions,
    ) -> Result<Self, StoreError> {
        let (config, options) = options::parse(url, options)?;
        let inner = Arc::new(Inner { local, config, options, state: Mutex::new(None) });
        inner.measure().await?;
        info!(skew_ms = inner.skew_ms(), "measured the database's clock");
        let stop = CancellationToken::new();
        let measuring = keep_measuring(inner.clone());
        let stopped = stop.clone();
        tokio::spawn(async move { stopped.run_until_cancelled(measuring).await });
        Ok(PostgresClock { inner, _stop: Arc::new(stop.drop_guard()) })
    }

    /// Measures now instead of within the next half minute.
    pub async fn measure(&self) -> Result<(), StoreError> {
        self.inner.measure().await
    }
}

#[async_trait]
impl Clock for PostgresClock {
    fn now(&self) -> Timestamp {
        self.inner.read(|state, steady| state.carried.now(steady))
    }

    async fn sleep_until(&self, at: Timestamp) {
        // A measurement may move it meanwhile, and Tokio counts whole milliseconds: look again, now and then.
        while let left = at - self.now()
            && !left.is_zero()
        {
            tokio::time::sleep(left.clamp(Duration::from_micros(100), LOOK_EVERY)).await;
        }
    }

    fn calendar(&self) -> Timestamp {
        self.inner.read(|state, steady| state.carried.calendar(steady))
    }

    fn steady(&self) -> Duration {
        self.inner.local.steady()
    }

    async fn sleep(&self, wait: Duration) {
        self.inner.local.sleep(wait).await;
    }

    fn leaps(&self) -> u64 {
        self.inner.read(|state, _| state.leaps)
    }

    fn leapt(&self) -> Duration {
        self.inner.read(|state, _| state.leapt)
    }

    fn not_before(&self, newest: Timestamp) {
        let moved = self.inner.read(|state, steady| state.carried.not_before(steady, newest));
        if moved > LEAP_MIN {
            warn!(
                behind_ms = moved.as_millis() as u64,
                "the database's clock is behind its newest entry; time goes on from that entry, a tenth more \
                 slowly, until the clock has caught up"
            );
        }
    }

    fn skew_ms(&self) -> i64 {
        self.inner.skew_ms()
    }
}

impl Inner {
    /// Moves to the database's time, or towards it.
    fn follow(&self, sample: Sample) {
        let mut state = self.state.lock();
        let steady = self.local.steady();
        // The answer is a little old.
        let truth = sample.database + steady.saturating_sub(sample.steady);
        let Some(state) = state.as_mut() else {
            *state = Some(State {
                carried: Carried::new(steady, truth),
                leaps: 0,
                leapt: Duration::ZERO,
                slow: false,
            });
            return;
        };
        match state.carried.correct(steady, truth) {
            Correction::Leapt(by) => {
                (state.leaps, state.leapt, state.slow) = (state.leaps + 1, state.leapt + by, false);
                let ahead_ms = by.as_millis() as u64;
                warn!(ahead_ms, "the database's clock is ahead; moving there, leases have their grace");
            }
            Correction::Slowed(by) if !state.slow => {
                state.slow = true;
                warn!(
                    behind_ms = by.as_millis() as u64,
                    "the database's clock was set back; time runs a tenth more slowly until it has caught \
                     up, \
                     and schedules wait for it"
                );
            }
            Correction::Kept if state.slow => {
                state.slow = false;
                info!("the database's clock has caught up");
            }
            Correction::Slowed(_) | Correction::Kept => {}
        }
    }

    fn skew_ms(&self) -> i64 {
        let database = self.read(|state, steady| state.carried.calendar(steady));
        database.0.saturating_sub(self.local.calendar().0) / 1000
    }

    fn read<T>(&self, read: impl FnOnce(&mut State, Duration) -> T) -> T {
        let mut state = self.state.lock();
        // Under the lock: a reading from before another thread's correction would lie before its anchor.
        let steady = self.local.steady();
        read(state.as_mut().expect("measured before anybody has the clock"), steady)
    }

    /// A connection is made for each measurement: two a minute are not worth keeping one.
    async fn measure(&self) -> Result<(), StoreError> {
        let session = Session::connect(&self.config, &self.options, Purpose::Read).await?;
        let asking = timeout(self.options.statement_timeout, self.ask(&session)).await;
        asking.unwrap_or_else(|_| Err(too_slow("measuring the clock")))
    }

    async fn ask(&self, session: &Session) -> Result<(), StoreError> {
        let mut best: Option<Sample> = None;
        for _ in 0..SAMPLES {
            let before = self.local.steady();
            let rows = session.query(DATABASE_TIME, &[]).await.map_err(from_postgres)?;
            let after = self.local.steady();
            let database: i64 = row::get(&rows[0], 0)?;
            let took = after.saturating_sub(before);
            let sample = Sample { took, steady: before + took / 2, database: Timestamp(database) };
            best = Some(best.map_or(sample, |known| if known.took <= sample.took { known } else { sample }));
        }
        self.follow(best.expect("there is at least one sample"));
        if self.skew_ms().abs() > SKEW_WARN_MS {
            warn!(
                skew_ms = self.skew_ms(),
                "this machine's clock differs from the database's; theirs is used"
            );
        }
        Ok(())
    }
}

/// One answer of the database.
#[derive(Clone, Copy)]
struct Sample {
    took: Duration,
    /// This machine's steady time when the database looked at its clock, within half of `took`.
    steady: Duration,
    database: Timestamp,
}

async fn keep_measuring(inner: Arc<Inner>) {
    loop {
        let (leaps, from) = (inner.local.leaps(), inner.local.steady());
        // Time stands still for this machine while it is suspended, and the database's goes on.
        while inner.local.leaps() == leaps && inner.local.steady().saturating_sub(from) < MEASURE_EVERY {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        if let Err(error) = inner.measure().await {
            // The last measurement stays good: steady time drifts by some milliseconds a minute at worst.
            warn!(%error, "could not measure the database's clock");
        }
    }
}
