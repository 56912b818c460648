//! The database's clock decides, so that servers whose clocks differ agree on what is due.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::Duration,
};

use async_trait::async_trait;
use kagzi_model::Timestamp;
use kagzi_store::{Clock, StoreError, SystemClock};
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
/// Of several answers the quickest says most: its error is at most half its round trip.
const SAMPLES: usize = 5;
/// More than this is worth an operator's look: leases and timers still agree, logs do not.
const SKEW_WARN_MS: i64 = 1000;

/// This machine's monotonic clock, shifted to the database's time. Never goes back.
#[derive(Clone)]
pub struct PostgresClock {
    inner: Arc<Inner>,
    /// Ends the measuring with the last clock.
    _stop: Arc<DropGuard>,
}

struct Inner {
    local: Arc<dyn Clock>,
    /// Database time minus local time.
    offset_us: AtomicI64,
    latest: AtomicI64,
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
        let inner = Arc::new(Inner { local, offset_us: AtomicI64::new(0), latest: AtomicI64::new(0) });
        inner.measure(&config, &options).await?;
        info!(skew_ms = inner.skew_ms(), "measured the database's clock");
        let stop = CancellationToken::new();
        let measuring = keep_measuring(inner.clone(), config, options);
        let stopped = stop.clone();
        tokio::spawn(async move { stopped.run_until_cancelled(measuring).await });
        Ok(PostgresClock { inner, _stop: Arc::new(stop.drop_guard()) })
    }
}

#[async_trait]
impl Clock for PostgresClock {
    fn now(&self) -> Timestamp {
        let now = self.inner.local.now().0 + self.inner.offset_us.load(Relaxed);
        // A smaller offset makes it stand for a moment, not go back.
        Timestamp(self.inner.latest.fetch_max(now, Relaxed).max(now))
    }

    async fn sleep_until(&self, at: Timestamp) {
        // The offset may change meanwhile, and Tokio counts whole milliseconds: look again, at least now and then.
        while let left = at - self.now()
            && !left.is_zero()
        {
            tokio::time::sleep(left.clamp(Duration::from_micros(100), MEASURE_EVERY)).await;
        }
    }

    fn skew_ms(&self) -> i64 {
        self.inner.skew_ms()
    }
}

impl Inner {
    fn skew_ms(&self) -> i64 {
        self.offset_us.load(Relaxed) / 1000
    }

    /// A connection is made for each measurement: two a minute are not worth keeping one.
    async fn measure(&self, config: &Config, options: &PostgresOptions) -> Result<(), StoreError> {
        let session = Session::connect(config, options, Purpose::Read).await?;
        let asking = timeout(options.statement_timeout, self.ask(&session)).await;
        asking.unwrap_or_else(|_| Err(too_slow("measuring the clock")))
    }

    async fn ask(&self, session: &Session) -> Result<(), StoreError> {
        let mut best: Option<(i64, i64)> = None;
        for _ in 0..SAMPLES {
            let before = self.local.now().0;
            let rows = session.query(DATABASE_TIME, &[]).await.map_err(from_postgres)?;
            let after = self.local.now().0;
            let database: i64 = row::get(&rows[0], 0)?;
            let sample = (after - before, database - (before + after) / 2);
            best = Some(best.map_or(sample, |known| known.min(sample)));
        }
        let (_, offset_us) = best.expect("there is at least one sample");
        self.offset_us.store(offset_us, Relaxed);
        if self.skew_ms().abs() > SKEW_WARN_MS {
            warn!(
                skew_ms = self.skew_ms(),
                "this machine's clock differs from the database's; theirs is used"
            );
        }
        Ok(())
    }
}

async fn keep_measuring(inner: Arc<Inner>, config: Config, options: PostgresOptions) {
    loop {
        tokio::time::sleep(MEASURE_EVERY).await;
        if let Err(error) = inner.measure(&config, &options).await {
            // The last offset stays good: the monotonic clock drifts by some milliseconds a minute at worst.
            warn!(%error, "could not measure the database's clock");
        }
    }
}
