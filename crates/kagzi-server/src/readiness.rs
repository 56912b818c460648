//! Readiness is progress: the store reads and its write path answers, now.

use std::time::{Duration, Instant};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use kagzi_engine::Engine;
use kagzi_store::SweepKind;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// A store that needs longer for an empty commit is not ready. Probes ask every few seconds and give up after
/// one or two.
const PATIENCE: Duration = Duration::from_secs(2);
/// Many probes cost one question.
const FRESH: Duration = Duration::from_millis(500);
/// How long a failed batch counts, when no later one has told otherwise.
const FAILURE_COUNTS_MS: i64 = 5_000;

type Probe = Shared<BoxFuture<'static, Result<Duration, String>>>;

/// Asks the store one question at a time.
pub struct Progress {
    engine: Engine,
    /// Cancelled when the server stops.
    stop: CancellationToken,
    last: Mutex<Option<(Instant, Probe)>>,
}

impl Progress {
    pub fn new(engine: Engine, stop: CancellationToken) -> Progress {
        Progress { engine, stop, last: Mutex::new(None) }
    }

    /// How long a read took, or why the server is not ready. While a question is unanswered no other is
    /// asked: its age is the answer.
    pub async fn check(&self) -> Result<Duration, String> {
        if self.stop.is_cancelled() {
            return Err("the server is stopping".into());
        }
        // For good: what was seen once is not undone by a commit that happens to succeed.
        if let Some(damage) = self.engine.store().stats().damage() {
            return Err(damage.to_owned());
        }
        let (asked, probe) = self.probe().await;
        let left = PATIENCE.saturating_sub(asked.elapsed());
        let answered = match probe.peek() {
            Some(answer) => answer.clone(),
            None => tokio::time::timeout(left, probe)
                .await
                .unwrap_or_else(|_| Err(format!("the store has not answered for {:.1?}", asked.elapsed()))),
        };
        let ping = answered?;
        let now = self.engine.clock().now();
        match self.engine.store().stats().failed_at() {
            Some(at) if at.plus_ms(FAILURE_COUNTS_MS) > now => {
                Err("the newest batch was not committed".into())
            }
            Some(_) | None => Ok(ping),
        }
    }

    async fn probe(&self) -> (Instant, Probe) {
        let mut last = self.last.lock().await;
        if let Some((asked, probe)) = &*last
            && (probe.peek().is_none() || asked.elapsed() < FRESH)
        {
            return (*asked, probe.clone());
        }
        // A task of its own: the caller may give up, the question goes on.
        let asking = tokio::spawn(ask(self.engine.clone()));
        let probe: Probe =
            asking.map(|asked| asked.unwrap_or_else(|error| Err(error.to_string()))).boxed().shared();
        let begun = (Instant::now(), probe);
        *last = Some(begun.clone());
        begun
    }
}

/// A read, and a transaction that changes nothing through the lane that every write takes.
async fn ask(engine: Engine) -> Result<Duration, String> {
    let store = engine.store();
    let began = Instant::now();
    store.ping().await.map_err(|error| error.to_string())?;
    let ping = began.elapsed();
    store.sweep(SweepKind::Probe {}).await.map_err(|error| error.to_string())?;
    Ok(ping)
}
