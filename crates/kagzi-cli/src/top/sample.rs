//! Everything that a frame shows, as it is at one moment.

use super::metrics::Metrics;
use crate::session::{self, Admin, Session, Workflows};
use kagzi_proto::v1::{
    GetServerInfoRequest, GetServerInfoResponse, ListWorkersRequest, ListWorkflowRunsRequest, Worker,
    WorkflowRun, WorkflowStatus,
};
use tokio::time::Instant;

/// Living runs of one status that are looked at; more are shown as "1000+".
pub const RUNS_MAX: i32 = 1_000;
const WORKERS_MAX: i32 = 100;

/// Statuses of runs that are not over, in the order in which they are shown.
pub const LIVING: [WorkflowStatus; 4] =
    [WorkflowStatus::Pending, WorkflowStatus::Running, WorkflowStatus::Sleeping, WorkflowStatus::Paused];

pub struct Sample {
    pub at: Instant,
    pub address: String,
    pub namespace: String,
    pub server: GetServerInfoResponse,
    pub metrics: Metrics,
    pub workers: Vec<Worker>,
    pub living: Vec<Living>,
}

/// Runs of one status.
pub struct Living {
    pub status: WorkflowStatus,
    pub runs: Vec<WorkflowRun>,
    /// There are more than were looked at.
    pub more: bool,
}

impl Sample {
    pub async fn take(session: &Session) -> anyhow::Result<Sample> {
        let channel = session::connect(&session.address).await?;
        let server = Admin::new(channel.clone()).get_server_info(GetServerInfoRequest {}).await?.into_inner();
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
            address: session.address.to_string(),
            namespace: session.namespace.clone(),
            server,
            metrics: Metrics::read(&session.address).await?,
            workers,
            living,
        })
    }
}

async fn of_status(
    workflows: &mut Workflows,
    session: &Session,
    status: WorkflowStatus,
) -> anyhow::Result<Living> {
    let request = ListWorkflowRunsRequest {
        namespace_id: session.namespace.clone(),
        page_size: RUNS_MAX,
        status: status.into(),
        ..Default::default()
    };
    let page = workflows.list_workflow_runs(request).await?.into_inner();
    Ok(Living { status, runs: page.workflow_runs, more: !page.next_page_token.is_empty() })
}
