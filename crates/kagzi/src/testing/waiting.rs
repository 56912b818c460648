//! Whether anything can still happen at this time of the clock, and if not, when something can.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use kagzi_server::Timestamp;
use tokio::time::Instant;

use crate::Client;
use crate::client::{Run, RunStatus};
use futures_util::TryStreamExt;

/// A run that is ready for this long, in real time, has no worker; nothing waits for it.
const UNSERVED_AFTER: Duration = Duration::from_secs(1);

/// Looks in a row that must agree: between two of them every message in flight has arrived.
const LOOKS: u32 = 3;

/// Looks at all runs again and again.
#[derive(Default)]
pub(crate) struct Watch {
    ready_since: HashMap<String, Instant>,
    agreed: Option<(Standing, u32)>,
}

/// Where the runs stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Busy,
    /// Nothing happens before this time; none = nothing happens at all.
    Waiting {
        until: Option<Timestamp>,
    },
}

impl Standing {
    pub(crate) fn is_busy(self) -> bool {
        self == Standing::Busy
    }

    pub(crate) fn next_due(self) -> Option<Timestamp> {
        match self {
            Standing::Busy => None,
            Standing::Waiting { until } => until,
        }
    }
}

impl Watch {
    /// Busy until several looks in a row saw the same.
    pub(crate) async fn look(&mut self, client: &Client, now: Timestamp) -> Standing {
        let seen = self.look_once(client, now).await;
        let looks = match self.agreed {
            Some((before, looks)) if before == seen => looks + 1,
            Some(_) | None => 1,
        };
        self.agreed = Some((seen, looks));
        if looks < LOOKS { Standing::Busy } else { seen }
    }

    async fn look_once(&mut self, client: &Client, now: Timestamp) -> Standing {
        // Running ones first: a run that moves on while we look is then seen twice rather than not at all.
        if !runs(client, RunStatus::Running).await.is_empty() {
            return Standing::Busy;
        }
        let mut waiting = runs(client, RunStatus::Pending).await;
        waiting.extend(runs(client, RunStatus::Sleeping).await);
        let mut until: Option<Timestamp> = None;
        let mut busy = false;
        self.ready_since.retain(|run_id, _| waiting.iter().any(|run| run.run_id == *run_id));
        for run in &waiting {
            match due_at(run).filter(|due| *due > now) {
                Some(due) => {
                    self.ready_since.remove(&run.run_id);
                    until = Some(until.map_or(due, |until| until.min(due)));
                }
                None => {
                    let since = self.ready_since.entry(run.run_id.clone()).or_insert_with(Instant::now);
                    busy |= since.elapsed() < UNSERVED_AFTER;
                }
            }
        }
        if busy { Standing::Busy } else { Standing::Waiting { until } }
    }
}

/// The next time at which something happens to a waiting run: its timer, its retry or its deadline.
pub(crate) fn due_at(run: &Run) -> Option<Timestamp> {
    let times = [run.wake_up_at, run.deadline_at];
    times.into_iter().flatten().map(micros).min()
}

fn micros(at: SystemTime) -> Timestamp {
    let since_1970 = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX))
}

/// All runs in this state. A call that fails sees none, which only delays the next look.
async fn runs(client: &Client, status: RunStatus) -> Vec<Run> {
    let found = client.runs().status(status).page_size(1000).stream();
    found.try_collect().await.unwrap_or_default()
}
