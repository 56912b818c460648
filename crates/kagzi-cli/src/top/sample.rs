//! Everything that a frame shows, as it is at one moment.

use super::metrics::Metrics;
use crate::session::{self, Admin, Session, Workflows};
use kagzi_proto::v1::{
    Gate, GetServerInfoRequest, GetServerInfoResponse, ListWorkersRequest, ListWorkflowRunsRequest, Queue,
    Worker, WorkflowStatus,
};
use std::time::SystemTime;
use tokio::time::Instant;

const WORKERS_MAX: i32 = 100;

/// Statuses of runs that are not over, in the order in which they are shown.
pub const LIVING: [WorkflowStatus; 4] =
    [WorkflowStatus::Pending, WorkflowStatus::Running, WorkflowStatus::Sleeping, WorkflowStatus::Paused];

pub struct Sample {
    pub at: Instant,
    /// The same moment by the calendar, to tell how long something waits.
    pub clock: SystemTime,
    pub address: String,
    pub namespace: String,
    pub server: GetServerInfoResponse,
    pub metrics: Metrics,
    pub workers: Vec<Worker>,
    pub living: Vec<Living>,
    pub queues: Vec<Queue>,
    /// Stands before all queues.
    pub namespace_gate: Option<Gate>,
}

/// Runs of one status.
pub struct Living {
    pub status: WorkflowStatus,
    pub count: u64,
    /// There are more than the server counts.
    pub more: bool,
}

impl Sample {
    pub async fn take(session: &Session) -> anyhow::Result<Sample> {
        let channel = session::connect(&session.address).await?;
        let server = Admin::new(channel.clone()).get_server_info(GetServerInfoRequest {}).await?.into_inner();
        let queues = session.admin_over(channel.clone()).queues().await?;
        let request = ListWorkersRequest {
            namespace_id: session.namespace.clone(),
            page_size: WORKERS_MAX,
            ..Default::default()
        };
        let workers =
            session::workers_over(channel.clone()).list_workers(request).await?.into_inner().workers;
        let mut workflows = session::workflows_over(channel);
        let mut living = Vec::with_capacity(LIVING.len());
        for status in LIVING {
            living.push(of_status(&mut workflows, session, status).await?);
        }
        Ok(Sample {
            at: Instant::now(),
            clock: SystemTime::now(),
            address: session.address.to_string(),
            namespace: session.namespace.clone(),
            server,
            metrics: Metrics::read(&session.address).await?,
            workers,
            living,
            queues: queues.queues,
            namespace_gate: queues.namespace_gate,
        })
    }
}

/// Counted by the server: no run is fetched for it.
async fn of_status(
    workflows: &mut Workflows,
    session: &Session,
    status: WorkflowStatus,
) -> anyhow::Result<Living> {
    let request = ListWorkflowRunsRequest {
        namespace_id: session.namespace.clone(),
        page_size: 1,
        include_total: true,
        status: status.into(),
        ..Default::default()
    };
    let page = workflows.list_workflow_runs(request).await?.into_inner();
    Ok(Living { status, count: page.total_count, more: page.total_capped })
}
