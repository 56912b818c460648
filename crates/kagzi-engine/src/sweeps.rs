//! Sweeps: what a server does by itself, each in a file of its own. Here they are started, stopped and kept
//! going: an error is logged, counted and tried again, and never ends a sweep.

mod cut_off;
mod ends_elsewhere;
mod events;
mod leases;
mod periodic;
mod questions;
mod retention;
mod schedules;
mod shared_keys;

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use kagzi_model::Timestamp;
use kagzi_store::StoreError;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::Engine;

/// How often a sweep that waits is reminded that real time passes.
pub(crate) const REMINDED_EVERY: Duration = Duration::from_millis(500);

/// One kind of housekeeping.
pub(crate) trait Sweep: Send + 'static {
    /// For logs and metrics.
    fn name(&self) -> &'static str;

    /// Each pause is longer by a random part of this, so that the servers of a database do not all look at
    /// once.
    fn jitter(&self) -> Duration {
        Duration::ZERO
    }

    /// When the first round is due.
    fn first(&self, _engine: &Engine) -> When {
        When::In(Duration::ZERO)
    }

    /// One round. Answers when the next one is due.
    fn round(&mut self, engine: &Engine) -> impl Future<Output = Result<When, StoreError>> + Send;

    /// The round failed. Answers when it is tried again.
    fn failed(&mut self, engine: &Engine, error: &StoreError) -> When;

    /// Returns when something is due sooner than that, with when.
    fn sooner(&self, _engine: &Engine, _than: When) -> impl Future<Output = When> + Send {
        std::future::pending()
    }

    /// Called at least every [`REMINDED_EVERY`] while it waits.
    fn remind(&mut self) {}
}

/// When a round is due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum When {
    /// By the clock that servers share.
    At(Timestamp),
    /// After so much steady time.
    In(Duration),
    /// After so much real time of this process, whatever the injected clock does.
    Pause(Duration),
    /// Only when it is called.
    Called,
}

impl When {
    fn later_by(self, jitter: Duration) -> When {
        match self {
            When::At(at) => When::At(at + jitter),
            When::In(steady) => When::In(steady + jitter),
            When::Pause(real) => When::Pause(real + jitter),
            When::Called => When::Called,
        }
    }

    async fn comes(self, engine: &Engine) {
        match self {
            When::At(at) => engine.clock().sleep_until(at).await,
            When::In(Duration::ZERO) => {}
            When::In(steady) => engine.clock().sleep(steady).await,
            When::Pause(real) => tokio::time::sleep(real).await,
            When::Called => std::future::pending().await,
        }
    }
}

/// Rounds and errors of each sweep since the start.
#[derive(Debug, Default)]
pub struct SweepStats(Mutex<BTreeMap<&'static str, SweepCount>>);

/// How often a sweep has looked, and how often in vain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweepCount {
    pub rounds: u64,
    pub errors: u64,
}

impl SweepStats {
    /// Every sweep by its name.
    pub fn read(&self) -> BTreeMap<&'static str, SweepCount> {
        self.0.lock().clone()
    }

    fn count(&self, name: &'static str, failed: bool) {
        let mut counts = self.0.lock();
        let count = counts.entry(name).or_default();
        count.rounds += 1;
        count.errors += u64::from(failed);
    }
}

/// A sweep that was started.
pub(crate) struct Sweeping {
    name: &'static str,
    task: JoinHandle<()>,
}

impl Sweeping {
    /// Waits for its end, after it was told to stop.
    pub(crate) async fn ended(self) {
        if let Err(error) = self.task.await {
            warn!(sweep = self.name, %error, "a sweep did not end cleanly");
        }
    }
}

/// Starts all sweeps. A new one is a line in `periodic.rs`, or a file and a line here.
pub(crate) fn start(engine: &Engine, stop: &CancellationToken) -> Vec<Sweeping> {
    let periodic = periodic::ALL.iter().map(|sweep| spawn(sweep, engine, stop));
    let others = [
        spawn(leases::Leases::new(engine), engine, stop),
        spawn(schedules::Schedules, engine, stop),
        spawn(events::Events, engine, stop),
        spawn(questions::Questions, engine, stop),
        spawn(retention::Retention::default(), engine, stop),
        spawn(cut_off::TakeOver, engine, stop),
        spawn(ends_elsewhere::EndsElsewhere, engine, stop),
        spawn(shared_keys::SharedKeys, engine, stop),
    ];
    periodic.chain(others).collect()
}

fn spawn<S: Sweep>(sweep: S, engine: &Engine, stop: &CancellationToken) -> Sweeping {
    let name = sweep.name();
    let task = tokio::spawn(keep_going(sweep, engine.clone(), stop.clone()));
    Sweeping { name, task }
}

/// Runs a sweep until told to stop. A round that is under way is not cut off.
async fn keep_going<S: Sweep>(mut sweep: S, engine: Engine, stop: CancellationToken) {
    let mut due = sweep.first(&engine);
    loop {
        if !wait(&mut sweep, &engine, &stop, due).await {
            return;
        }
        let swept = sweep.round(&engine).await;
        engine.hub().sweeps.count(sweep.name(), swept.is_err());
        due = match swept {
            Ok(due) => due,
            Err(error) => {
                error!(sweep = sweep.name(), %error, "a sweep failed, trying again");
                sweep.failed(&engine, &error)
            }
        };
        due = due.later_by(jitter(sweep.jitter()));
    }
}

/// Waits until a round is due; false when it is time to stop.
async fn wait<S: Sweep>(sweep: &mut S, engine: &Engine, stop: &CancellationToken, due: When) -> bool {
    let mut due = due;
    loop {
        // Steady and real time go on from here; only a time of the clock may be moved forward while it is
        // waited for.
        let comes = due.comes(engine);
        tokio::pin!(comes);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return false,
                () = &mut comes => return true,
                sooner = sweep.sooner(engine, due) => {
                    due = sooner;
                    break;
                }
                () = tokio::time::sleep(REMINDED_EVERY) => sweep.remind(),
            }
        }
    }
}

/// A random part of the longest jitter. The nanoseconds of the clock are random enough for that.
fn jitter(longest: Duration) -> Duration {
    if longest.is_zero() {
        return Duration::ZERO;
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    longest.mul_f64(f64::from(now.subsec_nanos() % 1_000) / 1_000.0)
}
