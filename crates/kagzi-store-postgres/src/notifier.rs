//! Rings the other servers: outside the hot transaction, on a connection of its own, a few times a second at
//! most.
//!
//! A transaction with a NOTIFY takes a lock of the whole database cluster while it commits. In the
//! transactions that write runs it would put all servers' commits in one line; here it is alone, and waits
//! for no disk.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use kagzi_model::{GateKey, RunId, Timestamp};
use kagzi_store::{Finished, LostLease, Observer, SignalNotice, Waiting};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_postgres::Config;
use tracing::debug;

use crate::{
    error::from_postgres,
    options::PostgresOptions,
    peers::{ANNOUNCE_EVERY, Peers},
    session::{Backoff, Purpose, Session},
    wake::{Hint, IDS_MAX},
};

const RING: &str = "SELECT pg_notify('kagzi_wake', hint)
   FROM unnest($1::text[]) AS hint";

/// The least time between two rings; hints of the meantime go together, each once.
const INTERVAL: Duration = Duration::from_millis(10);
/// The same for keys whose workers here are full. Every ring makes the other server look, and take runs that
/// would have been given out here within a moment: two busy servers reached 5,300 runs/s at 10 ms, 8,100
/// without ringing (`examples/throughput.rs`, measured once); at 100 ms they are within a tenth.
const BUSY_INTERVAL: Duration = Duration::from_millis(100);
/// More hints than this at once say "look everywhere".
const HINTS_MAX: usize = 256;
/// Ended runs beyond this in one interval are left for their waiters to find.
const ENDED_MAX: usize = 2000;

/// What waits to be told.
#[derive(Default)]
pub struct Outbox {
    hints: Mutex<HashSet<String>>,
    ended: Mutex<Vec<RunId>>,
    filled: Notify,
    /// Hints that are in no hurry.
    busy: Mutex<HashSet<String>>,
    busy_filled: Notify,
}

impl Outbox {
    fn put(&self, hints: impl Iterator<Item = String>) {
        self.hints.lock().extend(hints);
        self.filled.notify_one();
    }

    fn end(&self, run: RunId) {
        let mut ended = self.ended.lock();
        if ended.len() < ENDED_MAX {
            ended.push(run);
            self.filled.notify_one();
        }
    }

    fn put_busy(&self, hint: String) {
        self.busy.lock().insert(hint);
        self.busy_filled.notify_one();
    }

    fn take_busy(&self, server: &str) -> Vec<String> {
        named(std::mem::take(&mut *self.busy.lock()), server)
    }

    fn take(&self, server: &str) -> Vec<String> {
        let mut hints = named(std::mem::take(&mut *self.hints.lock()), server);
        let ended = std::mem::take(&mut *self.ended.lock());
        hints.extend(ended.chunks(IDS_MAX).map(|ids| Hint::Ended(ids.to_vec()).encode(server)));
        hints
    }
}

fn named(hints: HashSet<String>, server: &str) -> Vec<String> {
    match hints.len() {
        0..=HINTS_MAX => hints.into_iter().collect(),
        _ => vec![Hint::Everything.encode(server)],
    }
}

/// What the ringing task needs.
pub struct Notifier {
    pub outbox: Arc<Outbox>,
    pub peers: Arc<Peers>,
    pub server: String,
}

/// Passes facts on to the observer of this server, and hints to the other servers.
pub struct NotifyingObserver {
    pub inner: Arc<dyn Observer>,
    pub outbox: Arc<Outbox>,
    pub server: String,
}

impl Observer for NotifyingObserver {
    fn finished(&self, finished: Finished) {
        self.outbox.end(finished.run.id);
        self.inner.finished(finished);
    }

    fn lease_lost(&self, lost: LostLease) {
        // Its worker may be connected to another server.
        self.outbox.put([Hint::lost(&lost).encode(&self.server)].into_iter());
        self.inner.lease_lost(lost);
    }

    fn paused(&self, run: RunId) {
        self.inner.paused(run);
    }

    fn signalled(&self, notice: SignalNotice) {
        self.outbox.put([Hint::Signalled(notice.clone()).encode(&self.server)].into_iter());
        self.inner.signalled(notice);
    }

    fn sweep_due(&self, at: Timestamp) {
        self.inner.sweep_due(at);
    }

    fn question_due(&self, at: Timestamp) {
        self.inner.question_due(at);
    }

    fn schedule_due(&self, at: Timestamp, changed: bool) {
        if changed {
            self.outbox.put([Hint::Schedules.encode(&self.server)].into_iter());
        }
        self.inner.schedule_due(at, changed);
    }

    fn events_due(&self) {
        self.inner.events_due();
    }

    fn waiting(&self, keys: Vec<Waiting>) {
        for Waiting { key, watched } in &keys {
            let hint = Hint::Waiting(key.clone()).encode(&self.server);
            match watched {
                true => self.outbox.put_busy(hint),
                false => self.outbox.put([hint].into_iter()),
            }
        }
        self.inner.waiting(keys);
    }

    fn opened(&self, gates: Vec<GateKey>) {
        let hints = gates.iter().map(|gate| Hint::Opened(gate.clone()).encode(&self.server));
        self.outbox.put(hints);
        self.inner.opened(gates);
    }

    fn ended_elsewhere(&self, runs: &[RunId]) {
        self.inner.ended_elsewhere(runs);
    }

    fn commit_unanswered(&self) {
        self.inner.commit_unanswered();
    }
}

/// Sends what is put into the outbox, and now and then that this server is there, until it is stopped.
pub async fn ring(config: Config, options: PostgresOptions, notifier: Notifier) {
    let Notifier { outbox, peers, server } = notifier;
    let mut session: Option<Session> = None;
    let mut backoff = Backoff::default();
    let mut busy_after = tokio::time::Instant::now();
    let mut announcing = tokio::time::interval(ANNOUNCE_EVERY);
    loop {
        let busy = async {
            tokio::time::sleep_until(busy_after).await;
            outbox.busy_filled.notified().await;
        };
        let (hints, announces) = tokio::select! {
            _ = announcing.tick() => (vec![Hint::Here.encode(&server)], true),
            () = outbox.filled.notified() => (outbox.take(&server), false),
            () = busy => {
                busy_after = tokio::time::Instant::now() + BUSY_INTERVAL;
                (outbox.take_busy(&server), false)
            }
        };
        if hints.is_empty() || !announces && peers.absent(Instant::now()) {
            continue;
        }
        match send(&config, &options, &mut session, &hints).await {
            Ok(()) => {
                backoff.reset();
                tokio::time::sleep(INTERVAL).await;
            }
            Err(error) => {
                // The hints are lost; the others find the work by polling.
                debug!(%error, "could not ring the other servers");
                session = None;
                tokio::time::sleep(backoff.next()).await;
            }
        }
    }
}

async fn send(
    config: &Config,
    options: &PostgresOptions,
    session: &mut Option<Session>,
    hints: &[String],
) -> Result<(), kagzi_store::StoreError> {
    let session = match session {
        Some(session) if !session.closed() => session,
        _ => session.insert(Session::connect(config, options, Purpose::Ring).await?),
    };
    match tokio::time::timeout(options.statement_timeout, session.query(RING, &[&hints])).await {
        Ok(sent) => sent.map(drop).map_err(from_postgres),
        Err(_) => {
            session.abandon();
            Err(crate::session::too_slow("ringing"))
        }
    }
}
