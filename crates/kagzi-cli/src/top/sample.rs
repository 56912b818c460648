//! Everything that a frame shows, as it is at one moment.

use super::metrics::Metrics;
use crate::queue::view::GateView;
use crate::session::Session;
use kagzi::admin::{Queue, RegisteredWorker, ServerInfo};
use kagzi::client::RunStatus;
use std::time::SystemTime;
use tokio::time::Instant;

const WORKERS_MAX: u16 = 100;

/// Statuses of runs that are not over, in the order in which they are shown.
pub const LIVING: [RunStatus; 4] =
    [RunStatus::Pending, RunStatus::Running, RunStatus::Sleeping, RunStatus::Paused];

pub struct Sample {
    pub at: Instant,
    /// The same moment by the calendar, to tell how long something waits.
    pub clock: SystemTime,
    pub address: String,
    pub namespace: String,
    pub server: ServerInfo,
    pub metrics: Metrics,
    pub workers: Vec<RegisteredWorker>,
    pub living: Vec<Living>,
    pub queues: Vec<Queue>,
    /// Stands before all queues.
    pub namespace_gate: Option<GateView>,
}

/// Runs of one status.
pub struct Living {
    pub status: RunStatus,
    pub count: u64,
    /// There are more than the server counts.
    pub more: bool,
}

impl Sample {
    pub async fn take(session: &Session) -> anyhow::Result<Sample> {
        let admin = session.admin().await?;
        let client = session.client().await?;
        let mut living = Vec::with_capacity(LIVING.len());
        for status in LIVING {
            // Counted by the server: no run is fetched for it.
            let runs = client.runs().status(status).count().await?;
            living.push(Living { status, count: runs.count, more: runs.capped });
        }
        Ok(Sample {
            at: Instant::now(),
            clock: SystemTime::now(),
            address: session.address.to_string(),
            namespace: session.namespace.clone(),
            server: admin.server_info().await?,
            metrics: Metrics::read(&session.address).await?,
            workers: admin.workers().page_size(WORKERS_MAX).page("").await?.rows,
            living,
            queues: admin.queues().all().await?,
            namespace_gate: GateView::unless_open(admin.namespace_gate().await?),
        })
    }
}
